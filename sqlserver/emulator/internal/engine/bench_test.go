package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// execute runs a text by sp_executesql.
func execute(ctx context.Context, b *testing.B, s tds.Session, text, params string, args ...tds.Param) *recorder {
	all := append([]tds.Param{
		{Type: nvarcharType(sqltype.Max), Value: nvarcharValue(text)},
		{Type: nvarcharType(sqltype.Max), Value: nvarcharValue(params)},
	}, args...)
	r := &recorder{}
	if err := s.RPC(ctx, "sp_executesql", all, r); err != nil {
		b.Error(err)
	}
	for _, e := range r.errors {
		b.Errorf("%d %s", e.Number, e.Message)
	}
	return r
}

func fillOutbox(b *testing.B, s tds.Session, from, n int) {
	for at := from; at < from+n; at += 1000 {
		var ids strings.Builder
		ids.WriteByte('[')
		for i := range min(1000, from+n-at) {
			if i > 0 {
				ids.WriteByte(',')
			}
			fmt.Fprintf(&ids, `{"i":%d,"p":"%s"}`, at+i, strings.Repeat("x", 200))
		}
		ids.WriteByte(']')
		execute(context.Background(), b, s,
			`INSERT INTO e (id, event_type, payload) SELECT j.i, 'a', j.p FROM OPENJSON(@j) WITH (i BIGINT, p NVARCHAR(2000)) AS j`, `@j NVARCHAR(MAX)`,
			tds.Param{Name: "@j", Type: nvarcharType(sqltype.Max), Value: nvarcharValue(ids.String())})
	}
}

// BenchmarkClaim is the claim transaction of 500 rows on two sessions; it
// reports rows per second.
func BenchmarkClaim(b *testing.B) {
	e := newEngine(b)
	s := open(b, e)
	must(b, s, outboxTable)
	must(b, s, `CREATE TABLE dbo.r (claim_id BIGINT NOT NULL PRIMARY KEY, event_ids VARCHAR(MAX) NOT NULL)`)
	fillOutbox(b, s, 0, 500*b.N+1000)
	ctx := context.Background()
	var claims atomic.Int64
	b.ResetTimer()
	b.SetParallelism(1)
	b.RunParallel(func(pb *testing.PB) {
		s := open(b, e)
		w := &recorder{}
		run(b, s, "SET ARITHABORT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000")
		for pb.Next() {
			_ = s.Begin(ctx, 2, "", w)
			r := execute(ctx, b, s, `SELECT TOP (@n) id, payload, created_at, retry_count FROM e WITH (INDEX(IX_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
				WHERE event_type = CAST(@type AS VARCHAR(100)) AND status = 0 ORDER BY id`, `@n INT, @type VARCHAR(MAX)`,
				tds.Param{Name: "@n", Type: intType, Value: intValue(500)}, tds.Param{Name: "@type", Type: varcharType(sqltype.Max), Value: varcharValue("a")})
			var ids []string
			for _, l := range r.lines {
				if id, _, ok := strings.Cut(l, "|"); ok {
					ids = append(ids, id)
				}
			}
			if len(ids) != 500 {
				b.Errorf("%d rows", len(ids))
			}
			execute(ctx, b, s, `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
				UPDATE x SET status = 1, processed_at = @now FROM OPENJSON(@ids) WITH (id BIGINT '$') AS c INNER LOOP JOIN e AS x WITH (FORCESEEK, ROWLOCK) ON x.id = c.id WHERE x.status = 0 OPTION (MAXDOP 1);
				INSERT INTO r (claim_id, event_ids) VALUES (@claim, @ids)`, `@ids NVARCHAR(MAX), @claim BIGINT`,
				tds.Param{Name: "@ids", Type: nvarcharType(sqltype.Max), Value: nvarcharValue("[" + strings.Join(ids, ",") + "]")},
				tds.Param{Name: "@claim", Type: bigType, Value: bigValue(claims.Add(1))})
			_ = s.Commit(ctx, "", w)
		}
	})
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkInsert is a multi-row INSERT … VALUES of 500 rows.
func BenchmarkInsert(b *testing.B) {
	s := open(b, newEngine(b))
	must(b, s, outboxTable)
	var text strings.Builder
	text.WriteString("INSERT INTO e (id, event_type, payload) VALUES ")
	for i := range 500 {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString("(@first + " + strconv.Itoa(i) + ", 'a', @p)")
	}
	ctx := context.Background()
	b.ResetTimer()
	for i := range b.N {
		execute(ctx, b, s, text.String(), "@first BIGINT, @p NVARCHAR(2000)",
			tds.Param{Name: "@first", Type: bigType, Value: bigValue(int64(i) * 500)},
			tds.Param{Name: "@p", Type: nvarcharType(2000), Value: nvarcharValue(strings.Repeat("x", 200))})
	}
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "rows/s")
}
