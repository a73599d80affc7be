package servicebus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"azsqloutbox/worker"
)

// TestClassify covers errors in every shape that azservicebus gives them, save
// those that only it can make (TestConditionsOfTheBroker has these).
func TestClassify(t *testing.T) {
	rejected := func(condition amqp.ErrCond) error { return &amqp.Error{Condition: condition, Description: "d"} }
	detached := func(condition amqp.ErrCond) error {
		return &amqp.LinkError{RemoteErr: &amqp.Error{Condition: condition, Description: "d"}}
	}
	for _, c := range []struct {
		err    error
		kind   Kind
		action action
		dead   bool
	}{
		{rejected("com.microsoft:server-busy"), KindThrottled, retry, false},
		{detached("com.microsoft:server-busy"), KindThrottled, retry, true},
		{rejected("com.microsoft:operation-cancelled"), KindBroker, retry, false},
		{rejected(amqp.ErrCondResourceLimitExceeded), KindEntityFull, giveBack, false},
		{rejected("com.microsoft:entity-disabled"), KindEntityDisabled, giveBack, false},
		{detached(amqp.ErrCondNotFound), KindEntityMissing, giveBack, true},
		{rejected(amqp.ErrCondMessageSizeExceeded), KindNotAllowed, split, false},
		{azservicebus.ErrMessageTooLarge, KindNotAllowed, split, true},
		{rejected(amqp.ErrCondNotAllowed), KindNotAllowed, bisect, false},
		{rejected("contoso:never-heard-of"), KindUnknown, bisect, false},
		{&amqp.ConnError{}, KindConnection, retry, true},
		{&amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondConnectionForced}}, KindConnection, retry, true},
		{&amqp.SessionError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondInternalError}}, KindBroker, retry, true},
		{&azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, KindUnauthorized, giveBack, true},
		{&azservicebus.Error{Code: azservicebus.CodeNotFound}, KindEntityMissing, giveBack, true},
		{&azservicebus.Error{Code: azservicebus.CodeTimeout}, KindTimeout, retry, true},
		{&azservicebus.Error{Code: azservicebus.CodeConnectionLost}, KindConnection, retry, true},
		{&azservicebus.Error{Code: azservicebus.CodeClosed}, KindConnection, retry, true},
		{&azidentity.AuthenticationFailedError{}, KindUnauthorized, giveBack, true},
		{context.DeadlineExceeded, KindTimeout, retry, true},
		{errHung, KindTimeout, retry, true},
		{errors.New("dial tcp: refused"), KindConnection, retry, true},
	} {
		f := classify(fmt.Errorf("wrapped: %w", c.err))
		if f.kind != c.kind || f.action != c.action {
			t.Errorf("classify(%T %v) = %s, %d, want %s, %d", c.err, c.err, f.kind, f.action, c.kind, c.action)
		}
		if dead := killsSender(c.err); dead != c.dead {
			t.Errorf("killsSender(%T %v) = %t, want %t", c.err, c.err, dead, c.dead)
		}
	}
}

func TestScrub(t *testing.T) {
	const key = "c2VjcmV0LWtleQ=="
	p := &Publisher{secrets: redactor("Endpoint=sb://h/;SharedAccessKeyName=k;SharedAccessKey=" + key)}
	if got := p.scrub(errors.New("no access with " + key)).Error(); got != "no access with [secret]" {
		t.Errorf("scrub = %q", got)
	}
	clean := errors.New("no access")
	if got := p.scrub(clean); got != clean {
		t.Errorf("scrub changed an error without a secret: %v", got)
	}
}

func TestBoundedAbandonsAHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hang := make(chan struct{})
		defer close(hang)
		start := time.Now()
		err := bounded(ctx, 2*time.Second, func() error { <-hang; return nil })
		if !errors.Is(err, errHung) || time.Since(start) != 62*time.Second {
			t.Errorf("bounded = %v after %s, want errHung after 62s", err, time.Since(start))
		}
	})
}

func TestBoundedWaitsForACallThatEndsInTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		late := errors.New("late")
		err := bounded(ctx, 2*time.Second, func() error { <-ctx.Done(); time.Sleep(time.Second); return late })
		if !errors.Is(err, late) {
			t.Errorf("bounded = %v, want the call's own error", err)
		}
	})
}

// Whoever stops is not kept waiting by events that come too late.
func TestAClosedPublisherAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routes, err := NewRoutes(Route{Entity: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(Config{
			ConnectionString: "Endpoint=sb://localhost;SharedAccessKeyName=k;SharedAccessKey=s", Routes: routes, Source: "test",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for _, o := range p.Publish(t.Context(), make([]worker.Event, 10)) {
			if !errors.Is(o.Err, ErrClosed) {
				t.Errorf("the outcome is %v", o.Err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}
