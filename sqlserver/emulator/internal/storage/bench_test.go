package storage_test

import (
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// One claim: 500 rows read through the filtered index with update locks, each
// changed by primary key so that it leaves the index, committed. The aim is
// well over 200,000 rows/s on one core, so that storage is not what the
// emulator waits for.
func BenchmarkClaim(b *testing.B) {
	const batch, backlog = 500, 50_000
	o := newOutbox(b, 0)
	s := o.session()
	next := int64(0)
	refill := func() {
		for range backlog / batch {
			tx := begin(s)
			for range batch {
				o.must(tx.Insert(b.Context(), o.table, values(next, "order", 0, "payload")))
				next++
			}
			o.must(tx.Commit())
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if o.claim.Rows() < batch {
			b.StopTimer()
			refill()
			b.StartTimer()
		}
		tx := begin(s)
		rows, err := read(b.Context(), tx, o.table, o.claiming(), batch)
		o.must(err)
		tx.BeginStatement()
		for _, claimed := range rows {
			if err := o.set(tx, claimed.Values[colID].N, colStatus, number(1)); err != nil {
				b.Fatal(err)
			}
		}
		o.must(tx.Commit())
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "rows/s")
}

// 500 rows inserted in one transaction, into table and claim index.
func BenchmarkInsert(b *testing.B) {
	const batch = 500
	o := newOutbox(b, 0)
	s := o.session()
	next := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		tx := begin(s)
		for range batch {
			if err := tx.Insert(b.Context(), o.table, values(next, "order", 0, "payload")); err != nil {
				b.Fatal(err)
			}
			next++
		}
		o.must(tx.Commit())
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "rows/s")
}

// One row by primary key, as of the statement.
func BenchmarkSeek(b *testing.B) {
	o := newOutbox(b, 100_000)
	tx := o.begin()
	request := byID(0, storage.S)
	request.Mode = storage.ReadVersion
	id := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		id = (id + 7919) % 100_000
		request.Lower.Prefix[0].N = id + 1
		if rows := o.read(tx, request); len(rows) != 1 {
			b.Fatal(rows)
		}
	}
}

// The whole table, as of the statement.
func BenchmarkScan(b *testing.B) {
	const size = 100_000
	o := newOutbox(b, size)
	tx := o.begin()
	b.ReportAllocs()
	for b.Loop() {
		c := tx.Scan(b.Context(), o.table, storage.ScanRequest{})
		for {
			_, ok, err := c.Next()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
		}
		c.Close()
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
}
