package storage_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// The columns of the tests' table, a small outbox.
const (
	colID = iota
	colType
	colStatus
	colPayload
)

func number(n int64) sqltype.Value { return sqltype.Value{Kind: sqltype.BigInt, N: n} }

func text(s string) sqltype.Value { return sqltype.Value{Kind: sqltype.VarChar, S: s} }

func values(id int64, typ string, status int64, payload string) []sqltype.Value {
	return []sqltype.Value{number(id), text(typ), number(status), text(payload)}
}

// with copies a row with one column changed.
func with(row []sqltype.Value, column int, v sqltype.Value) []sqltype.Value {
	row = slices.Clone(row)
	row[column] = v
	return row
}

func compareValues(a, b sqltype.Value) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	if a.N != b.N {
		return cmp.Compare(a.N, b.N)
	}
	return strings.Compare(a.S, b.S)
}

func part(column int) storage.KeyPart {
	return storage.KeyPart{Column: column, Compare: compareValues}
}

// outbox is a table with the claim index of the real one: (type, id) holding
// the payload, WHERE status = 0.
type outbox struct {
	testing.TB
	db    *storage.DB
	table *storage.Table
	claim *storage.Index
}

func newOutbox(t testing.TB, pending int) *outbox {
	t.Helper()
	db := storage.New()
	o := &outbox{TB: t, db: db}
	o.table = db.CreateTable(4, &storage.IndexSpec{Name: "PK", Key: []storage.KeyPart{part(colID)}, Unique: true})
	o.autocommit(func(tx *storage.Txn) error {
		var err error
		o.claim, err = o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{
			Name: "IX_claim", Key: []storage.KeyPart{part(colType), part(colID)}, Include: []int{colPayload},
			Filter: func(row []sqltype.Value) bool { return row[colStatus].N == 0 },
		})
		return err
	})
	o.autocommit(func(tx *storage.Txn) error {
		for id := range int64(pending) {
			if err := tx.Insert(t.Context(), o.table, values(id+1, "order", 0, "p")); err != nil {
				return err
			}
		}
		return nil
	})
	return o
}

// session opens a session that the test closes.
func (o *outbox) session() *storage.Session {
	s := o.db.NewSession()
	o.Cleanup(s.Close)
	return s
}

func (o *outbox) begin() *storage.Txn { return begin(o.session()) }

func begin(s *storage.Session) *storage.Txn {
	tx := s.Begin(storage.ReadCommitted)
	tx.BeginStatement()
	return tx
}

func (o *outbox) autocommit(f func(*storage.Txn) error) {
	o.Helper()
	s := o.db.NewSession()
	defer s.Close()
	tx := begin(s)
	o.must(f(tx))
	o.must(tx.Commit())
}

func (o *outbox) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// byID asks for one row by primary key.
func byID(id int64, lock storage.LockMode) storage.ScanRequest {
	at := storage.Bound{Prefix: []sqltype.Value{number(id)}, Inclusive: true, Set: true}
	return storage.ScanRequest{Lower: at, Upper: at, Mode: storage.ReadLocked, Lock: lock}
}

// claiming is the claim's scan.
func (o *outbox) claiming() storage.ScanRequest {
	at := storage.Bound{Prefix: []sqltype.Value{text("order")}, Inclusive: true, Set: true}
	return storage.ScanRequest{
		Index: o.claim, Lower: at, Upper: at,
		Mode: storage.ReadLocked, Lock: storage.U, ReadPast: true,
	}
}

// read scans at most limit rows, 0 for all.
func read(ctx context.Context, tx *storage.Txn, t *storage.Table, r storage.ScanRequest, limit int) ([]storage.Row, error) {
	c := tx.Scan(ctx, t, r)
	defer c.Close()
	var rows []storage.Row
	for limit == 0 || len(rows) < limit {
		row, ok, err := c.Next()
		if err != nil || !ok {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (o *outbox) read(tx *storage.Txn, r storage.ScanRequest) []storage.Row {
	o.Helper()
	rows, err := read(context.Background(), tx, o.table, r, 0)
	o.must(err)
	return rows
}

func ids(rows []storage.Row) []int64 {
	all := []int64{}
	for _, r := range rows {
		all = append(all, r.Values[colID].N)
	}
	return all
}

func (o *outbox) wantIDs(what string, rows []storage.Row, want ...int64) {
	o.Helper()
	if got := ids(rows); !slices.Equal(got, want) {
		o.Errorf("%s: ids %v, want %v", what, got, want)
	}
}

// set updates one column of the row with that id.
func (o *outbox) set(tx *storage.Txn, id int64, column int, v sqltype.Value) error {
	return set(context.Background(), tx, o.table, id, column, v)
}

func set(ctx context.Context, tx *storage.Txn, t *storage.Table, id int64, column int, v sqltype.Value) error {
	rows, err := read(ctx, tx, t, byID(id, storage.U), 0)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := tx.Update(ctx, t, row, with(row.Values, column, v)); err != nil {
			return err
		}
	}
	return nil
}

func (o *outbox) remove(tx *storage.Txn, id int64) error {
	ctx := context.Background()
	rows, err := read(ctx, tx, o.table, byID(id, storage.U), 0)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := tx.Delete(ctx, o.table, row); err != nil {
			return err
		}
	}
	return nil
}

// wantSound compares every index with the rows it should hold, and holds the
// counters to nothing being left over. Nobody else may use the table.
func (o *outbox) wantSound() {
	o.Helper()
	tx := o.begin()
	defer tx.Rollback()
	all := o.read(tx, storage.ScanRequest{})
	if got := o.table.Rows(); got != int64(len(all)) {
		o.Errorf("Table.Rows is %d, a scan finds %d", got, len(all))
	}
	for _, ix := range o.table.Indexes() {
		spec := ix.Spec()
		var want []int64
		for _, row := range all {
			if spec.Filter == nil || spec.Filter(row.Values) {
				want = append(want, row.Values[colID].N)
			}
		}
		got := ids(o.read(tx, storage.ScanRequest{Index: ix}))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			o.Errorf("index %s holds %v, want %v", spec.Name, got, want)
		}
		if ix.Rows() != int64(len(want)) {
			o.Errorf("index %s counts %d rows, want %d", spec.Name, ix.Rows(), len(want))
		}
	}
	tx.EndStatement()
	if c := o.db.Counters(); c.Versions != 0 || c.Ghosts != 0 {
		o.Errorf("left over: %d versions, %d ghosts", c.Versions, c.Ghosts)
	}
	if locks := o.db.Locks(); len(locks) != 0 {
		o.Errorf("left over: locks %+v", locks)
	}
}

// attempt runs f in a goroutine of its own.
type attempt struct {
	testing.TB
	done chan error
}

func (o *outbox) attempt(f func() error) *attempt {
	a := &attempt{o.TB, make(chan error, 1)}
	go func() { a.done <- f() }()
	return a
}

// wantWaiting says that f is asleep. Only inside a synctest bubble.
func (a *attempt) wantWaiting(what string) {
	a.Helper()
	synctest.Wait()
	select {
	case err := <-a.done:
		a.Fatalf("%s should wait; it ended with %v", what, err)
	default:
	}
}

// wantDone returns what f returned. Only inside a synctest bubble.
func (a *attempt) wantDone(what string) error {
	a.Helper()
	synctest.Wait()
	select {
	case err := <-a.done:
		return err
	default:
		a.Fatalf("%s should be done; it waits", what)
		return nil
	}
}

// bubble runs f on the fake clock of a synctest bubble.
func bubble(t *testing.T, pending int, f func(*testing.T, *outbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newOutbox(t, pending)) })
}
