package tds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func TestUTF8SupportIsAcknowledgedAndUsed(t *testing.T) {
	utf8 := collationNamed(t, "Latin1_General_100_BIN2_UTF8")
	backend := &fakeBackend{handlers: map[string]handler{
		"text": func(_ context.Context, _ call, w ResultWriter) error {
			if err := w.Columns([]Column{{Name: "v", Type: sqltype.Type{Kind: sqltype.VarChar, Length: 10, Collation: utf8}}}); err != nil {
				return err
			}
			if err := w.Row([]sqltype.Value{{Kind: sqltype.VarChar, S: "世"}}); err != nil {
				return err
			}
			return w.Done(1, true)
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	collation := appendCollation(nil, utf8)
	tests := []struct {
		name     string
		features []byte
		ack      []byte
		column   []byte // id, size
		row      []byte
	}{
		{
			"asked for",
			[]byte{featureUTF8, 1, 0, 0, 0, 1, featureEnd},
			[]byte{tokenFeatureAck, featureUTF8, 1, 0, 0, 0, 1, featureEnd},
			[]byte{idBigVarChar, 10, 0},
			append([]byte{tokenRow, 3, 0}, "世"...),
		},
		{
			"other features only",
			[]byte{0x01, 0, 0, 0, 0, featureEnd},
			[]byte{tokenFeatureAck, featureEnd},
			[]byte{idNVarChar, 20, 0},
			[]byte{tokenRow, 2, 0, 0x16, 0x4e},
		},
		{
			"no features", nil, nil,
			[]byte{idNVarChar, 20, 0},
			[]byte{tokenRow, 2, 0, 0x16, 0x4e},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, answer := login(t, addr, tt.features)
			acked := bytes.Contains(answer, []byte{tokenFeatureAck, featureEnd}) || bytes.Contains(answer, []byte{tokenFeatureAck, featureUTF8})
			if acked != (tt.ack != nil) || !bytes.Contains(answer, tt.ack) {
				t.Errorf("the answer to the login is % x, want % x in it", answer, tt.ack)
			}
			c.send(packetBatch, statusEndOfMessage, batchBytes("text"))
			reply := c.receive()
			if want := append(bytes.Clone(tt.column), collation...); !bytes.Contains(reply, want) {
				t.Errorf("no column % x in % x", want, reply)
			}
			if !bytes.Contains(reply, tt.row) {
				t.Errorf("no row % x in % x", tt.row, reply)
			}
		})
	}
}

func TestSeveralCallsInOneMessage(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{"a": echo, "b": echo}}
	addr, _ := start(t, Config{Backend: backend})
	c, _ := login(t, addr, nil)
	text := func(name, s string) []byte {
		b := appendShortText(nil, name)
		b = append(b, 0, idNVarChar, 0x40, 0x1f, 0, 0, 0, 0, 0)
		u := appendUTF16(nil, s)
		return append(appendUint16(b, len(u)), u...)
	}
	body := headers(0)
	body = append(body, 0xff, 0xff, 10, 0, 0, 0) // sp_executesql by its number
	body = append(append(body, text("", "a")...), text("@params", "@p int")...)
	body = append(appendShortText(body, "@p"), 0, idIntN, 4, 4, 42, 0, 0, 0)
	body = append(body, rpcNext)
	body = append(appendText(body, "b"), 0, 0)
	body = append(appendShortText(body, "@q"), paramDefault|paramOutput, idBitN, 1, 0)
	c.send(packetRPC, statusEndOfMessage, body)
	reply := c.receive()
	token, status := lastDone(t, reply)
	if token != tokenDoneProc || status != 0 {
		t.Errorf("ends with token %x, status %x", token, status)
	}
	first := appendDone(nil, done{token: tokenDoneProc, status: doneMore})
	if n := bytes.Count(reply, first); n != 1 {
		t.Errorf("%d calls before the last one ended, want 1: % x", n, reply)
	}
	backend.seen(func(b *fakeBackend) {
		if len(b.calls) != 2 {
			t.Fatalf("%d calls", len(b.calls))
		}
		want := []Param{{Name: "@p", Type: sqltype.Type{Kind: sqltype.Int}, Value: sqltype.Value{Kind: sqltype.Int, N: 42}}}
		if diff := cmp.Diff(want, b.calls[0].params); diff != "" {
			t.Errorf("first call (-want +got):\n%s", diff)
		}
		want = []Param{{Name: "@q", Type: sqltype.Type{Kind: sqltype.Bit}, Default: true, Output: true}}
		if diff := cmp.Diff(want, b.calls[1].params); diff != "" {
			t.Errorf("second call (-want +got):\n%s", diff)
		}
	})
}

func wantAttention(t *testing.T, c *rawClient, when string) {
	t.Helper()
	if _, status := lastDone(t, c.receive()); status&doneAttention == 0 {
		t.Errorf("%s: DONE with status %x, want an acknowledged attention", when, status)
	}
}

func TestAttentionAtAnyTime(t *testing.T) {
	columns := []Column{{Name: "id", Type: sqltype.Type{Kind: sqltype.Int}}}
	running := make(chan struct{}, 1)
	bulkStarted := make(chan struct{}, 1)
	bulkEnded := make(chan error, 1)
	backend := &fakeBackend{handlers: map[string]handler{
		"nothing":     func(context.Context, call, ResultWriter) error { return nil },
		"INSERT BULK": func(_ context.Context, _ call, w ResultWriter) error { return w.ExpectBulk(columns) },
		"wait": func(ctx context.Context, _ call, w ResultWriter) error {
			running <- struct{}{}
			<-ctx.Done()
			return w.Done(1, true)
		},
	}}
	addr, _ := start(t, Config{Backend: bulkWatcher{backend, bulkStarted, bulkEnded}})
	c, _ := login(t, addr, nil)

	for range 10 { // more often than there are packet buffers
		c.send(packetAttention, statusEndOfMessage, nil)
		wantAttention(t, c, "between requests")
	}

	c.send(packetBatch, statusEndOfMessage, batchBytes("wait"))
	<-running
	c.send(packetAttention, statusEndOfMessage, nil)
	if _, status := lastDone(t, c.receive()); status != doneError {
		t.Errorf("a cancelled request ends with status %x", status)
	}
	wantAttention(t, c, "after a cancelled request")

	c.send(packetBatch, 0, batchBytes("not"))
	c.send(packetAttention, statusEndOfMessage, nil)
	wantAttention(t, c, "in the middle of a message")

	c.send(packetBatch, 0, batchBytes("not"))
	c.send(packetBatch, statusEndOfMessage|statusIgnore, nil)
	if _, status := lastDone(t, c.receive()); status != doneError {
		t.Errorf("a withdrawn message ends with status %x", status)
	}

	c.send(packetBatch, statusEndOfMessage, batchBytes("INSERT BULK"))
	c.receive()
	rows := []byte{tokenColMetadata, 1, 0, 0, 0, 0, 0, 0, 0, idIntN, 4}
	rows = append(appendShortText(rows, "id"), tokenRow, 4, 1, 0, 0, 0)
	c.send(packetBulk, 0, rows)
	<-bulkStarted
	c.send(packetAttention, statusEndOfMessage, nil)
	wantAttention(t, c, "under a bulk load")
	if err := <-bulkEnded; !errors.Is(err, errAttention) {
		t.Errorf("the bulk load ended with %v", err)
	}

	c.send(packetBatch, statusEndOfMessage, batchBytes("nothing"))
	if _, status := lastDone(t, c.receive()); status != 0 {
		t.Errorf("a batch afterwards ends with status %x", status)
	}
}

// FreeTDS ends its rows with the message; a row that is cut short is still an
// error, and nothing of the load is kept.
func TestBulkLoadWithoutDone(t *testing.T) {
	columns := []Column{{Name: "id", Type: sqltype.Type{Kind: sqltype.Int}}}
	backend := &fakeBackend{handlers: map[string]handler{
		"INSERT BULK": func(_ context.Context, _ call, w ResultWriter) error { return w.ExpectBulk(columns) },
	}}
	addr, _ := start(t, Config{Backend: backend})
	rows := []byte{tokenColMetadata, 1, 0, 0, 0, 0, 0, 0, 0, idIntN, 4}
	rows = append(appendShortText(rows, "id"), tokenRow, 4, 1, 0, 0, 0, tokenRow, 4, 2, 0, 0, 0)
	load := func(packets ...[]byte) uint16 {
		c, _ := login(t, addr, nil)
		c.send(packetBatch, statusEndOfMessage, batchBytes("INSERT BULK"))
		c.receive()
		for i, p := range packets {
			status := uint8(0)
			if i == len(packets)-1 {
				status = statusEndOfMessage
			}
			c.send(packetBulk, status, p)
		}
		_, status := lastDone(t, c.receive())
		return status
	}

	for name, packets := range map[string][][]byte{
		"in one packet":               {rows},
		"with an empty packet at end": {rows, nil},
	} {
		if status := load(packets...); status&doneError != 0 {
			t.Errorf("%s: ends with status %x", name, status)
		}
	}
	if status := load(rows[:len(rows)-1]); status&doneError == 0 {
		t.Errorf("a row that is cut short ends with status %x, want an error", status)
	}
	backend.seen(func(b *fakeBackend) {
		loaded := 0
		for _, c := range b.calls {
			if c.sql == "bulk rows" {
				loaded++
				if len(c.rows) != 2 || c.rows[1][0].N != 2 {
					t.Errorf("loaded %v", c.rows)
				}
			}
		}
		if loaded != 2 {
			t.Errorf("%d loads, want 2", loaded)
		}
	})
}

// TestFlushReachesTheClientInTheMiddleOfARequest has the request end only when
// the client has seen its message.
func TestFlushReachesTheClientInTheMiddleOfARequest(t *testing.T) {
	seen := make(chan struct{})
	backend := &fakeBackend{handlers: map[string]handler{
		"tell": func(ctx context.Context, _ call, w ResultWriter) error {
			if err := errors.Join(w.Info(&Error{Message: "begun"}), w.Flush()); err != nil {
				return err
			}
			select {
			case <-seen:
			case <-ctx.Done():
				return ctx.Err()
			}
			return w.Done(7, true)
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	c, _ := login(t, addr, nil)
	c.send(packetBatch, statusEndOfMessage, batchBytes("tell"))
	p, _, err := readPacket(c.conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.status&statusEndOfMessage != 0 || !bytes.Contains(p.payload, appendUTF16(nil, "begun")) {
		t.Errorf("first came status %x, % x", p.status, p.payload)
	}
	close(seen)
	if rest, want := c.receive(), appendDone(nil, done{token: tokenDone, status: doneCount, count: 7}); !bytes.Equal(rest, want) {
		t.Errorf("then came % x, want % x", rest, want)
	}
}

// bulkWatcher tells when the first row of a bulk load has arrived.
type bulkWatcher struct {
	*fakeBackend
	started chan<- struct{}
	ended   chan<- error
}

func (b bulkWatcher) Login(ctx context.Context, l Login) (Session, error) {
	s, err := b.fakeBackend.Login(ctx, l)
	return bulkWatcherSession{s, b}, err
}

type bulkWatcherSession struct {
	Session
	b bulkWatcher
}

func (s bulkWatcherSession) Bulk(_ context.Context, _ []Column, next func() ([]sqltype.Value, bool, error), _ ResultWriter) error {
	_, _, err := next()
	s.b.started <- struct{}{}
	for ok := err == nil; ok; {
		_, ok, err = next()
	}
	s.b.ended <- err
	return err
}

func TestTransactionRequests(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{
		"SAVE TRANSACTION [a]]b]": func(context.Context, call, ResultWriter) error { return nil },
		"inside":                  func(context.Context, call, ResultWriter) error { return nil },
	}}
	addr, _ := start(t, Config{Backend: backend})
	c, _ := login(t, addr, nil)
	request := func(kind uint16, transaction uint64, rest ...byte) []byte {
		c.send(packetTransaction, statusEndOfMessage, append(appendUint16(headers(transaction), int(kind)), rest...))
		return c.receive()
	}
	const id = 0x1122334455667788 + 2
	if reply := request(transactionBegin, 0, 2, 0); !bytes.Contains(reply, appendEnvTransaction(nil, envBegin, id)) {
		t.Errorf("begin answers % x", reply)
	}
	if _, status := lastDone(t, request(transactionSave, id, appendShortText(nil, "a]b")...)); status != 0 {
		t.Errorf("a savepoint ends with status %x", status)
	}
	both := append(appendEnvTransaction(nil, envCommit, id), appendEnvTransaction(nil, envBegin, id+1)...)
	if reply := request(transactionCommit, id, 0, transactionThenBegin, 3, 0); !bytes.Contains(reply, both) {
		t.Errorf("commit and begin answer % x", reply)
	}

	// A request that means the transaction before.
	c.send(packetBatch, statusEndOfMessage, appendUTF16(headers(id), "inside"))
	if reply := c.receive(); !bytes.Contains(reply, binary.LittleEndian.AppendUint32(nil, errorResume)) {
		t.Errorf("a stale transaction answers % x", reply)
	}
	c.send(packetBatch, statusEndOfMessage, appendUTF16(headers(id+1), "inside"))
	if _, status := lastDone(t, c.receive()); status != 0 {
		t.Errorf("the right transaction ends with status %x", status)
	}

	// A reset rolls back, and says so.
	c.send(packetBatch, statusEndOfMessage|statusReset, appendUTF16(headers(0), "inside"))
	reply := c.receive()
	if want := append(appendEnvTransaction(nil, envRollback, id+1), appendEnvReset(nil)...); !bytes.Contains(reply, want) {
		t.Errorf("a reset answers % x", reply)
	}
	if reply := request(0, 0); !bytes.Contains(reply, binary.LittleEndian.AppendUint32(nil, errorNoDTC)) {
		t.Errorf("a distributed transaction answers % x", reply)
	}
}
