package sqlserver_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

func server(numbers ...int32) mssql.Error {
	var all []mssql.Error
	for _, n := range numbers {
		all = append(all, mssql.Error{Number: n, Message: fmt.Sprintf("message of %d", n)})
	}
	last := all[len(all)-1]
	last.All = all
	return last
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		class     sqlserver.Class
		number    int32
		after     time.Duration
		permanent bool
	}{
		"deadlock":                  {server(1205), sqlserver.Contention, 1205, 0, false},
		"lock timeout, wrapped":     {fmt.Errorf("flip: %w", server(1222)), sqlserver.Contention, 1222, 0, false},
		"busy":                      {server(40501), sqlserver.Transient, 40501, 10 * time.Second, false},
		"read-only":                 {server(3906), sqlserver.Reconnect, 3906, 0, false},
		"no index":                  {server(308), sqlserver.IndexUnusable, 308, 0, false},
		"no table":                  {server(208), sqlserver.Permanent, 208, 0, true},
		"terminated after a reason": {server(2628, 3621), sqlserver.Permanent, 2628, 0, true},
		"login of a moving db":      {server(4060, 18456), sqlserver.Transient, 4060, 10 * time.Second, false},
		"login refused":             {server(18456), sqlserver.Permanent, 18456, 0, true},
		"unknown number":            {server(12345), sqlserver.Transient, 12345, 0, false},
		"broken connection":         {io.EOF, sqlserver.Transient, 0, 0, false},
		"marked":                    {fmt.Errorf("x: %w", worker.ErrPermanent), sqlserver.Permanent, 0, 0, true},
	} {
		err := sqlserver.Classify("claim", c.err)
		var e *sqlserver.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %T", name, err)
		}
		if e.Class != c.class || e.Number != c.number || e.RetryAfter() != c.after ||
			errors.Is(err, worker.ErrPermanent) != c.permanent || !errors.Is(err, c.err) && !errors.As(err, new(mssql.Error)) {
			t.Errorf("%s: %+v", name, e)
		}
		if again := sqlserver.Classify("outer", err); again != err {
			t.Errorf("%s: classified twice: %v", name, again)
		}
	}
	if err := sqlserver.Classify("claim", nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}

// The worker tries again whatever it does not know; the text promises nothing.
func TestErrorTextSaysWhatIsNotKnown(t *testing.T) {
	const says = "trying again may not help"
	for number, unknown := range map[int32]bool{12345: true, 40613: false, 1205: false, 50000: false} {
		if text := sqlserver.Classify("claim", server(number)).Error(); strings.Contains(text, says) != unknown {
			t.Errorf("of %d: %s", number, text)
		}
	}
}

func TestErrorTextNamesTheCause(t *testing.T) {
	text := sqlserver.Classify("claim events of dbo.outbox_event", server(2628, 3621)).Error()
	for _, want := range []string{"claim events of dbo.outbox_event: ", "message of 2628", "2628", "longer than its column"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
