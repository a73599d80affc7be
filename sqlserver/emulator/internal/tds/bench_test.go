package tds

import (
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// BenchmarkRowsOut is one result of 600-byte rows over a socket, read by a
// client that does not decode it: what the server alone can do.
func BenchmarkRowsOut(b *testing.B) {
	backend := &fakeBackend{handlers: map[string]handler{"rows": rowsHandler(b.N, 600)}}
	addr, _ := start(b, Config{Backend: backend})
	c, _ := login(b, addr, nil)
	buf := make([]byte, 0, maxPacketSize)
	b.ResetTimer()
	c.send(packetBatch, statusEndOfMessage, batchBytes("rows"))
	for {
		p, again, err := readPacket(c.conn, buf)
		if err != nil {
			b.Fatal(err)
		}
		if buf = again; p.status&statusEndOfMessage != 0 {
			break
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkDriverRowsOut(b *testing.B) {
	backend := &fakeBackend{handlers: map[string]handler{"rows": rowsHandler(b.N, 600)}}
	addr, _ := start(b, Config{Backend: backend})
	db := openDB(b, addr, "encrypt=disable&packet+size=32767")
	b.ResetTimer()
	rows, err := db.Query("rows")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	if rows.Err() != nil || n != b.N {
		b.Fatalf("%d rows, %v", n, rows.Err())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkDriverCalls(b *testing.B) {
	addr, _ := start(b, Config{Backend: &fakeBackend{handlers: map[string]handler{"echo": echo}}})
	db := openDB(b, addr, "encrypt=disable")
	db.SetMaxOpenConns(1)
	for range b.N {
		if _, err := db.Exec("echo", 1, "text"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkAppendRow must not allocate.
func BenchmarkAppendRow(b *testing.B) {
	for name, t := range map[string]sqltype.Type{
		"varchar":  {Kind: sqltype.VarChar, Length: 2000},
		"nvarchar": {Kind: sqltype.NVarChar, Length: 2000},
	} {
		b.Run(name, func(b *testing.B) {
			var cols []column
			for _, t := range []sqltype.Type{{Kind: sqltype.BigInt}, t, {Kind: sqltype.DateTime2, Scale: 3}} {
				c, err := columnFor("c", t, false)
				if err != nil {
					b.Fatal(err)
				}
				cols = append(cols, c)
			}
			row := []sqltype.Value{
				{Kind: sqltype.BigInt, N: 1 << 40},
				{Kind: t.Kind, S: strings.Repeat("p", 600)},
				{Kind: sqltype.DateTime2, N: 638_000_000_000_000_000},
			}
			var buf []byte
			b.ReportAllocs()
			for range b.N {
				var err error
				if buf, err = appendRow(buf[:0], cols, row); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(600)
		})
	}
}
