package maintenance

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func init() {
	maps.Copy(kinds, map[string]string{
		"purgeColumnsSQL":   "Select",
		"purgeTableRowsSQL": "Select",
		"purgeCutoffSQL":    "Declare Declare Select Select Select",
		"purgeHolderSQL":    "Select",
		"purgeLookSQL":      "Declare Declare Declare Declare Select",
		"purgeNewestSQL":    "Declare Declare Declare Select",
		"purgeDeleteSQL":    "Declare Declare Declare Delete Set Select",
		"purgeLogWaitsSQL":  "Select",
		"purgeLogWriteSQL":  "Select",
	})
	fill := func(text string) []string {
		var texts []string
		for _, table := range []purgeTable{
			{[]purgeColumn{{name: "id", kind: "bigint", bytes: 8}, {name: "payload", kind: "varchar", bytes: 2000}, {name: "it's ]odd[", kind: "xml", bytes: -1}}},
			{[]purgeColumn{{name: "ID", kind: "int", bytes: 4}}},
		} {
			texts = append(texts, strings.NewReplacer("{text_bytes}", table.textBytes(), "{id_t}", table.idType()).Replace(text))
		}
		return texts
	}
	for _, name := range []string{"purgeLookSQL", "purgeNewestSQL", "purgeDeleteSQL"} {
		renderings[name] = fill
	}
}

func TestRowBytes(t *testing.T) {
	outbox := purgeTable{[]purgeColumn{
		{name: "id", kind: "bigint", bytes: 8},
		{name: "status", kind: "tinyint", bytes: 1},
		{name: "created_at", kind: "datetime2", bytes: 7},
		{name: "payload", kind: "varchar", bytes: 2000},
		{name: "headers", kind: "varchar", bytes: -1},
		{name: "event_type", kind: "nvarchar", bytes: 200},
		{name: "flag", kind: "bit", bytes: 1},
		{name: "other", kind: "bit", bytes: 1},
		{name: "sum", kind: "int", bytes: 4, computed: true},
	}}
	if got, want := outbox.rowBytes(), int64(4+(8+1+7)+1+(2+1)+(2+2*3)+2); got != want {
		t.Errorf("%d bytes a row, want %d", got, want)
	}
	if got, want := (purgeTable{[]purgeColumn{{kind: "int", bytes: 4}}}).rowBytes(), int64(4+4+(2+1)+2); got != want {
		t.Errorf("%d bytes a row without texts, want %d", got, want)
	}
	if text := (purgeTable{[]purgeColumn{{kind: "int"}}}).textBytes(); text != "CAST(0 AS BIGINT)" {
		t.Errorf("the texts of a table without any are %q", text)
	}
}

func TestWalkEndsBehindEnoughYoungRows(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := purgeTexts{highest: 1_000_000}
	window := func(seen, last int64, age time.Duration) look {
		l := look{seen: seen, last: last}
		l.oldest.Time, l.oldest.Valid = at.Add(-age), true
		return l
	}
	w := walk{from: 1}
	for i, c := range []struct {
		l    look
		more bool
		from int64
	}{
		{window(2000, 5000, time.Hour), true, 5001},
		{window(2000, 9000, -time.Hour), true, 9001},         // young, but only so many
		{window(2000, 11000, time.Millisecond), true, 11001}, // one old row is enough to begin again
		{window(2000, 13000, 0), true, 13001},
		{window(2000, 15000, 0), false, 15001},
	} {
		if more := w.step(s, c.l, 2000, at); more != c.more || w.from != c.from {
			t.Errorf("step %d: more is %t from %d on, want %t from %d", i, more, w.from, c.more, c.from)
		}
	}
	if (&walk{}).step(s, window(1999, 5, time.Hour), 2000, at) {
		t.Error("a window that is not full is the last one")
	}
	if (&walk{}).step(s, window(2000, 1_000_000, time.Hour), 2000, at) {
		t.Error("nothing comes behind the highest id")
	}
	noTimes := look{seen: 2000, last: 5}
	w = walk{young: 2000}
	if !w.step(s, noTimes, 2000, at) || w.young != 0 {
		t.Error("rows without created_at are not known to be young")
	}
}

func TestLogGaugeJudges(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waited := func(ms int64) (r logReading) {
		r.waitMS.Int64, r.waitMS.Valid = ms, true
		return r
	}
	wrote := func(percent float64, at time.Duration) (r logReading) {
		r.percent.Float64, r.percent.Valid = percent, true
		r.percentOf = begin.Add(at)
		return r
	}
	for _, c := range []struct {
		name string
		in   []logReading
		want bool
	}{
		{"the first look has nothing to compare with", []logReading{waited(1_000_000)}, false},
		{"no new waits", []logReading{waited(1000), waited(1000)}, false},
		{"a few", []logReading{waited(1000), waited(1400)}, false},
		{"many", []logReading{waited(1000), waited(1600)}, true},
		{"and none any more", []logReading{waited(1000), waited(9000), waited(9100)}, false},
		{"a failover begins the count again", []logReading{waited(100_000), waited(700)}, false},
		{"the log is nearly full speed", []logReading{wrote(80, time.Second)}, true},
		{"it is not", []logReading{wrote(79.9, time.Second)}, false},
		{"the same row says nothing new, so it stays", []logReading{wrote(95, time.Second), wrote(95, time.Second)}, true},
		{"until the next row", []logReading{wrote(95, time.Second), wrote(20, 16*time.Second)}, false},
		{"nothing can be seen", []logReading{{}, {}}, false},
		{"the waits alone are out of sight", []logReading{{}, wrote(99, time.Second)}, true},
	} {
		var g logGauge
		for i, r := range c.in {
			g.judge(r, begin.Add(time.Duration(i)*logLookEvery))
		}
		if g.short != c.want {
			t.Errorf("%s: short of log is %t", c.name, g.short)
		}
	}
}
