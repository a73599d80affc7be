package sqlserver

import (
	"math"
	"testing"

	"azsqloutbox/worker"
)

func TestAbove(t *testing.T) {
	for _, c := range []struct {
		kind  string
		after worker.Cursor
		from  int64
		some  bool
	}{
		{"bigint", worker.Cursor{}, math.MinInt64, true},
		{"bigint", worker.After(7), 8, true},
		{"bigint", worker.After(math.MaxInt64), 0, false},
		{"int", worker.Cursor{}, math.MinInt32, true},
		{"int", worker.After(math.MaxInt32), 0, false},
		{"tinyint", worker.After(-5), 0, true},
	} {
		from, some := column{kind: c.kind}.above(c.after)
		if from != c.from || some != c.some {
			t.Errorf("%s above %+v: %d, %v; want %d, %v", c.kind, c.after, from, some, c.from, c.some)
		}
	}
}

func TestDeclaration(t *testing.T) {
	for want, c := range map[string]column{
		"VARCHAR(2000)":  {kind: "varchar", bytes: 2000},
		"NVARCHAR(2000)": {kind: "nvarchar", bytes: 4000},
		"VARCHAR(MAX)":   {kind: "varchar", bytes: -1},
		"BIGINT":         {kind: "bigint", bytes: 8},
	} {
		if got := c.declaration(); got != want {
			t.Errorf("%+v is declared %s, want %s", c, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	for definition, proves := range map[string]bool{
		"([status]=(2) OR [status]=(1) OR [status]=(0))": true,
		"([status] IN (0, 1, 2))":                        true,
		"([status]=(2) OR [status]=(3))":                 false,
		"([status]>=(0))":                                false,
		"([retry_count]=(0) OR [status]=(1))":            false,
		"([status]=(0) AND [retry_count]=(0))":           false,
	} {
		if got := provesStatus(definition); got != proves {
			t.Errorf("%s proves status: %v, want %v", definition, got, proves)
		}
	}
}
