package worker

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// newPause grows from first to longest, doubling, with jitter by half.
func newPause(first, longest time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = first, longest, 2
	return b
}

// pauseFor is the next pause, or longer where the error asks for it.
func pauseFor(err error, b *backoff.ExponentialBackOff) time.Duration {
	return max(b.NextBackOff(), pauseHint(err))
}

// pauseHint is what an error says of when trying again makes sense, as the
// throttling errors of Azure SQL do.
func pauseHint(err error) time.Duration {
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(err, &hint) {
		return hint.RetryAfter()
	}
	return 0
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return sleepUnless(ctx, d, nil) }

// sleepUnless returns false when ctx ended or wake was signalled first.
func sleepUnless(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-wake:
		return false
	case <-ctx.Done():
		return false
	}
}
