package sizing

import (
	"fmt"
	"math"

	"azsqloutbox/internal/quantity"
)

// Plan is what a workload needs, by arithmetic: nothing was measured.
type Plan struct {
	// Tier and Objective are of Azure SQL, for the outbox alone: what else is in
	// the database comes on top.
	Tier      Tier   `json:"tier"`
	Objective string `json:"objective"`
	VCores    int    `json:"vcores"`
	// Fits is false where Problems has something; VCores is then where the tier's
	// limits end.
	Fits           bool     `json:"fits"`
	LimitingFactor string   `json:"limiting_factor"`
	Factors        []Factor `json:"factors"`

	LogMBPerSecond   float64 `json:"log_mb_per_s"`
	LogBytesPerEvent float64 `json:"log_bytes_per_event"`

	Rows      int64   `json:"rows"`
	RowBytes  float64 `json:"row_bytes"`
	StorageGB float64 `json:"storage_gb"`
	HotGB     float64 `json:"hot_gb"`
	// WholeInMemory is how many vCores would hold all rows in memory; 0 where no
	// size does.
	WholeInMemory int `json:"vcores_whole_table_in_memory"`

	// ServiceBusTier is the least that carries the workload; MessagingUnits are
	// those of Premium in either case, of each of the Namespaces.
	ServiceBusTier    string  `json:"service_bus_tier"`
	CreditsPerSecond  float64 `json:"credits_per_s"`
	BrokerMBPerSecond float64 `json:"service_bus_mb_per_s"`
	MessagingUnits    int     `json:"messaging_units"`
	Namespaces        int     `json:"namespaces"`

	Replicas               int     `json:"replicas"`
	ReplicaEventsPerSecond float64 `json:"replica_events_per_s"`
	// ReplicaRate is a bound for each replica, so that all together leave the
	// receivers of a Standard namespace their credits; below 10 with two digits
	// behind the point, and 0 on Premium.
	ReplicaRate float64 `json:"replica_rate"`

	Problems    []string `json:"problems"`
	Assumptions []string `json:"assumptions"`
}

// Size does the arithmetic. It asks no database. A workload that is more in one
// respect and the same in all others never needs less of anything.
func Size(w Workload) (Plan, error) {
	if err := w.Validate(); err != nil {
		return Plan{}, fmt.Errorf("size an outbox: %w", err)
	}
	w = w.withDefaults()
	o, factors, limiting, _ := w.choose()
	units, namespaces := w.premium()
	p := Plan{
		Tier: o.Tier, Objective: o.Name, VCores: o.VCores, LimitingFactor: limiting, Factors: factors,
		LogMBPerSecond: w.EventsPerSecond * w.logPerEvent() / MB, LogBytesPerEvent: w.logPerEvent(),
		Rows: int64(w.rows()), RowBytes: w.row().onPage + w.row().offPage,
		StorageGB: w.storageBytes() / GB, HotGB: w.hotBytes() / GB,
		ServiceBusTier: Premium, CreditsPerSecond: w.EventsPerSecond * w.creditsPerEvent(),
		BrokerMBPerSecond: w.brokerBytesPerSecond() / 1e6, MessagingUnits: units, Namespaces: namespaces,
		Replicas: w.replicas(), ReplicaEventsPerSecond: w.replicaEventsPerSecond(),
		Problems: w.problems(factors, namespaces), Assumptions: w.assumptions(),
	}
	if w.standardCarries() {
		p.ServiceBusTier = Standard
		p.ReplicaRate = bound(StandardCredits / w.creditsPerEvent() / float64(p.Replicas))
	}
	if n, ok := smallest(w.Tier, w.storageBytes(), Objective.bufferPoolBytes); ok {
		p.WholeInMemory = n
	}
	p.Fits = len(p.Problems) == 0
	p.round()
	return p, nil
}

// round leaves what a reader can use: three digits, upwards.
func (p *Plan) round() {
	for _, f := range []*float64{&p.LogMBPerSecond, &p.LogBytesPerEvent, &p.RowBytes, &p.StorageGB, &p.HotGB, &p.CreditsPerSecond, &p.BrokerMBPerSecond} {
		*f = up(*f)
	}
	p.ReplicaEventsPerSecond = math.Floor(p.ReplicaEventsPerSecond*10) / 10
	for i := range p.Factors {
		p.Factors[i].Need = up(p.Factors[i].Need)
		p.Factors[i].Limit = math.Round(p.Factors[i].Limit*100) / 100
	}
}

// bound rounds a rate down. Where a topic has hundreds of subscriptions it is below
// one event a second.
func bound(perSecond float64) float64 {
	if perSecond >= 10 {
		return math.Floor(perSecond)
	}
	return math.Floor(perSecond*100) / 100
}

// up rounds to three digits, never down; what is left of a binary fraction does
// not count.
func up(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	digits := math.Ceil(v/unit - 1e-9)
	if unit < 1 {
		return digits / math.Round(1/unit)
	}
	return digits * unit
}

// problems are what no size of the tier, of a namespace or of the app can give,
// with the way out.
func (w Workload) problems(factors []Factor, namespaces int) []string {
	problems := []string{}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, f := range factors {
		if f.VCores > 0 {
			continue
		}
		say("no size of %s has the %s for it: %.4g %s are needed, and it may be planned with %.4g: %s", w.Tier, f.words(), f.Need, f.Unit, f.Limit, w.wayOut(f.Name))
	}
	if namespaces > 1 {
		say("one namespace of 16 messaging units is not enough: spread the entities over %d of them, with a worker app for each", namespaces)
	}
	if n := w.replicas(); n > maxReplicas {
		say("%d replicas of %v vCPU are more than the %d that infra/main.bicep allows: give each of them more vCPU, up to 1", n, replicaCores, maxReplicas)
	}
	return problems
}

// maxReplicas is the bound of the parameter in infra/main.bicep.
const maxReplicas = 30

func (f Factor) words() string {
	return map[string]string{FactorLog: "log rate", FactorMemory: "memory", FactorCPU: "CPU", FactorStorage: "storage"}[f.Name]
}

// wayOut names what would carry it, or what would make it less.
func (w Workload) wayOut(factor string) string {
	for _, tier := range []Tier{Hyperscale, BusinessCritical} {
		other := w
		other.Tier = tier
		if o, _, _, fits := other.choose(); fits {
			return fmt.Sprintf("%s does, with %s", tier, quantity.Of(o.VCores, "vCore"))
		}
	}
	switch {
	case factor == FactorLog && !w.SlimClaimIndex:
		return "make events smaller, try the slim claim index, or spread them over several databases"
	case factor == FactorMemory:
		return "plan for a shorter outage, or spread events over several databases"
	default:
		return "spread events over several databases"
	}
}
