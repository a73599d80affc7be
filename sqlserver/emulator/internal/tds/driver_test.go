package tds

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-sql/civil"
	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func TestDriverSendsAndReceivesEveryType(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{"echo": echo}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")

	when := time.Date(2026, 2, 28, 23, 59, 58, 123_456_700, time.UTC)
	east := when.In(time.FixedZone("", 5*3600+1800))
	var guid mssql.UniqueIdentifier
	if err := guid.Scan("01234567-89AB-CDEF-0123-456789ABCDEF"); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x€𝄞", 100_000)
	tests := []struct {
		name string
		in   any
		kind sqltype.Kind
		want any
	}{
		{"nil", nil, sqltype.Null, nil},
		{"bool", true, sqltype.Bit, true},
		{"uint8", uint8(255), sqltype.TinyInt, int64(255)},
		{"int16", int16(-32768), sqltype.SmallInt, int64(-32768)},
		{"int32", int32(-2147483648), sqltype.Int, int64(-2147483648)},
		{"int64", int64(-9223372036854775808), sqltype.BigInt, int64(-9223372036854775808)},
		{"null int64", sql.NullInt64{}, sqltype.BigInt, nil},
		{"float64", 1.5e300, sqltype.Float, 1.5e300},
		{"nvarchar", "Grüße, 世界 𝄞", sqltype.NVarChar, "Grüße, 世界 𝄞"},
		{"empty nvarchar", "", sqltype.NVarChar, ""},
		{"nvarchar of MAX over many packets", long, sqltype.NVarChar, long},
		{"null string", sql.NullString{}, sqltype.NVarChar, nil},
		{"varchar", mssql.VarChar("plain"), sqltype.VarChar, "plain"},
		{"varchar MAX", mssql.VarCharMax(strings.Repeat("y", 9000)), sqltype.VarChar, strings.Repeat("y", 9000)},
		{"empty varchar MAX", mssql.VarCharMax(""), sqltype.VarChar, ""},
		{"nchar", mssql.NChar("nc"), sqltype.NChar, "nc"},
		{"varbinary", []byte{0, 1, 255}, sqltype.VarBinary, []byte{0, 1, 255}},
		{"varbinary MAX", []byte(strings.Repeat("\x00\xff", 5000)), sqltype.VarBinary, []byte(strings.Repeat("\x00\xff", 5000))},
		{"datetimeoffset", east, sqltype.DateTimeOffset, east},
		{"datetime", mssql.DateTime1(when), sqltype.DateTime, when.Truncate(time.Second).Add(123 * time.Millisecond)},
		{"datetime2", civil.DateTimeOf(when), sqltype.DateTime2, when},
		{"date", civil.DateOf(when), sqltype.Date, time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)},
		{"time", civil.TimeOf(when), sqltype.Time, time.Date(1, 1, 1, 23, 59, 58, 123_456_700, time.UTC)},
		{"uniqueidentifier", guid, sqltype.UniqueIdentifier, func() []byte { v, _ := guid.Value(); return v.([]byte) }()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got any
			if err := db.QueryRow("echo", tt.in).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if when, ok := tt.want.(time.Time); ok {
				if !when.Equal(got.(time.Time)) {
					t.Errorf("got %v, want %v", got, when)
				}
			} else if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("wrong value (-want +got):\n%.500s", diff)
			}
			backend.seen(func(b *fakeBackend) {
				if kind := b.calls[len(b.calls)-1].params[0].Type.Kind; kind != tt.kind {
					t.Errorf("decoded as kind %d, want %d", kind, tt.kind)
				}
			})
		})
	}
}

func rowsHandler(n int, size int) handler {
	return func(_ context.Context, _ call, w ResultWriter) error {
		if err := w.Columns([]Column{
			{Name: "id", Type: sqltype.Type{Kind: sqltype.BigInt}},
			{Name: "payload", Type: sqltype.Type{Kind: sqltype.VarChar, Length: 2000}, Nullable: true},
		}); err != nil {
			return err
		}
		payload := strings.Repeat("p", size)
		row := make([]sqltype.Value, 2)
		for i := range n {
			row[0] = sqltype.Value{Kind: sqltype.BigInt, N: int64(i)}
			row[1] = sqltype.Value{Kind: sqltype.VarChar, S: payload}
			if err := w.Row(row); err != nil {
				return err
			}
		}
		return w.Done(int64(n), true)
	}
}

func TestBigResultWithPacketSizes(t *testing.T) {
	addr, _ := start(t, Config{Backend: &fakeBackend{handlers: map[string]handler{"rows": rowsHandler(20_000, 600)}}})
	// The driver cannot take a TLS handshake in packets of 512.
	for size, encrypt := range map[int]bool{512: false, 4096: true, 32767: true, 16383: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			mode := "disable"
			if encrypt {
				mode = "true"
			}
			db := openDB(t, addr, fmt.Sprintf("encrypt=%s&packet+size=%d", mode, size))
			rows, err := db.Query("rows")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			n := 0
			for ; rows.Next(); n++ {
				var id int64
				var payload string
				if err := rows.Scan(&id, &payload); err != nil {
					t.Fatal(err)
				}
				if id != int64(n) || len(payload) != 600 {
					t.Fatalf("row %d has id %d and %d bytes", n, id, len(payload))
				}
			}
			if err := rows.Err(); err != nil || n != 20_000 {
				t.Errorf("got %d rows, %v", n, err)
			}
		})
	}
}

func TestCancelStopsRunningRequest(t *testing.T) {
	started := make(chan struct{}, 1)
	stopped := make(chan error, 1)
	backend := &fakeBackend{handlers: map[string]handler{
		"echo": echo,
		"wait": func(ctx context.Context, _ call, _ ResultWriter) error {
			started <- struct{}{}
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return ctx.Err()
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")
	db.SetMaxOpenConns(1)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		if _, err := db.ExecContext(ctx, "wait"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if cause := <-stopped; !errors.Is(cause, errAttention) {
			t.Errorf("the request was stopped by %v", cause)
		}
		// The same connection serves on.
		var n int64
		if err := db.QueryRow("echo", 7).Scan(&n); err != nil || n != 7 {
			t.Fatalf("after a cancel: %d, %v", n, err)
		}
	}
	backend.seen(func(b *fakeBackend) {
		if len(b.logins) != 1 {
			t.Errorf("%d logins; the driver gave a connection up", len(b.logins))
		}
	})
}

func TestCancelInTheMiddleOfRows(t *testing.T) {
	ended := make(chan error, 1)
	backend := &fakeBackend{handlers: map[string]handler{
		"echo": echo,
		"endless": func(ctx context.Context, c call, w ResultWriter) error {
			err := rowsHandler(1<<40, 600)(ctx, c, w)
			ended <- err
			return err
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=disable")
	db.SetMaxOpenConns(1)
	rows, err := db.Query("endless")
	if err != nil {
		t.Fatal(err)
	}
	rows.Next()
	_ = rows.Close() // sends an attention
	if err := <-ended; !errors.Is(err, errAttention) {
		t.Errorf("the engine was stopped by %v", err)
	}
	var n int64
	if err := db.QueryRow("echo", 8).Scan(&n); err != nil || n != 8 {
		t.Errorf("after the attention: %d, %v", n, err)
	}
	backend.seen(func(b *fakeBackend) {
		if len(b.logins) != 1 {
			t.Errorf("%d logins; the driver gave a connection up", len(b.logins))
		}
	})
}

func TestErrorsAndResultSets(t *testing.T) {
	one := func(n int64) handler {
		return func(_ context.Context, _ call, w ResultWriter) error {
			if err := w.Columns([]Column{{Name: "n", Type: sqltype.Type{Kind: sqltype.Int}}}); err != nil {
				return err
			}
			if err := w.Row([]sqltype.Value{{Kind: sqltype.Int, N: n}}); err != nil {
				return err
			}
			return w.Done(1, true)
		}
	}
	backend := &fakeBackend{handlers: map[string]handler{
		"two sets": func(ctx context.Context, c call, w ResultWriter) error {
			for _, h := range []handler{one(1), one(2)} {
				if err := h(ctx, c, w); err != nil {
					return err
				}
			}
			return nil
		},
		"row then error": func(ctx context.Context, c call, w ResultWriter) error {
			if err := one(1)(ctx, c, w); err != nil {
				return err
			}
			return w.Error(&Error{Number: 2627, State: 1, Class: 14, Message: "Violation of PRIMARY KEY", Procname: "p", Line: 3})
		},
		"counts": func(_ context.Context, _ call, w ResultWriter) error {
			for _, n := range []int64{2, 3} {
				if err := w.Done(n, true); err != nil {
					return err
				}
			}
			return w.Done(0, false)
		},
		"fatal": func(context.Context, call, ResultWriter) error {
			return &Error{Number: 40197, State: 1, Class: 20, Message: "The service has encountered an error"}
		},
		"dropped": func(context.Context, call, ResultWriter) error { return ErrDropped },
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")

	for _, args := range [][]any{nil, {1}} { // a batch, then an sp_executesql
		rows, err := db.Query("two sets", args...)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for ok := true; ok; ok = rows.NextResultSet() {
			for rows.Next() {
				var n int
				if err := rows.Scan(&n); err != nil {
					t.Fatal(err)
				}
				got = append(got, n)
			}
			got = append(got, -1)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{1, -1, 2, -1}, got); diff != "" {
			t.Errorf("args %v: wrong results (-want +got):\n%s", args, diff)
		}

		var n int
		var sqlErr mssql.Error
		rows, err = db.Query("row then error", args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			n++
		}
		if !errors.As(rows.Err(), &sqlErr) || sqlErr.Number != 2627 || sqlErr.LineNo != 3 || sqlErr.ProcName != "p" || n != 1 {
			t.Errorf("args %v: %d rows, then %v", args, n, rows.Err())
		}
		_ = rows.Close()

		result, err := db.Exec("counts", args...)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := result.RowsAffected(); n != 5 {
			t.Errorf("args %v: %d rows affected, want 5", args, n)
		}
	}

	var sqlErr mssql.Error
	if _, err := db.Exec("no such thing"); !errors.As(err, &sqlErr) || sqlErr.Number != 102 || sqlErr.LineNo != 7 {
		t.Errorf("got %v, want 102 in line 7", err)
	}
	if _, err := db.Exec("fatal"); !errors.As(err, &sqlErr) || sqlErr.Number != 40197 {
		t.Errorf("got %v, want 40197", err)
	}
	if _, err := db.Exec("dropped"); err == nil || errors.As(err, &sqlErr) && sqlErr.Number != 0 {
		t.Errorf("got %v, want a lost connection", err)
	}
}

func TestTransactionsAndReset(t *testing.T) {
	inside := func(_ context.Context, c call, w ResultWriter) error {
		if c.session.tran == 0 {
			return w.Error(&Error{Number: 50000, Class: 16, Message: "outside of a transaction"})
		}
		return nil
	}
	backend := &fakeBackend{handlers: map[string]handler{"inside": inside, "echo": echo}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")
	db.SetMaxOpenConns(1)
	for range 3 {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("inside"); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		tx, err = db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
	backend.seen(func(b *fakeBackend) {
		// The driver asks for a reset on a new connection too.
		if b.resets != 6 || len(b.logins) != 1 {
			t.Errorf("%d resets on %d logins, want 6 on 1", b.resets, len(b.logins))
		}
	})
}

func TestOutputParametersAndProcedures(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{
		"dbo.proc": func(_ context.Context, c call, w ResultWriter) error {
			if err := w.Done(3, true); err != nil {
				return err
			}
			if err := w.ReturnStatus(7); err != nil {
				return err
			}
			for _, p := range c.params {
				if p.Output {
					if p.Value.Kind == sqltype.BigInt {
						p.Value.N *= 2
					} else {
						p.Value.S += "!"
					}
					if err := w.ReturnValue(p); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")
	n, text := int64(21), "hello"
	var status mssql.ReturnStatus
	if _, err := db.Exec("dbo.proc",
		sql.Named("n", sql.Out{Dest: &n}), sql.Named("s", sql.Out{Dest: &text}), sql.Named("in", 1), &status); err != nil {
		t.Fatal(err)
	}
	if n != 42 || text != "hello!" || status != 7 {
		t.Errorf("got %d, %q and status %d", n, text, status)
	}
}
