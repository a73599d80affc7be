package service

import "go.opentelemetry.io/otel/metric"

// builder makes instruments and keeps the first error.
type builder struct {
	meter metric.Meter
	err   error
}

func (b *builder) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) counter(name, unit, what string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return c
}

func (b *builder) seconds(name, what string) metric.Float64Histogram {
	return b.histogram(name, "s", what, secondsBuckets...)
}

func (b *builder) histogram(name, unit, what string, buckets ...float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(buckets...))
	b.keep(err)
	return h
}

func (b *builder) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return g
}

func (b *builder) floatGauge(name, unit, what string) metric.Float64ObservableGauge {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return g
}
