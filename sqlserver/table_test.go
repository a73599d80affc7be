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
		"DATETIME2(3)":   {kind: "datetime2", scale: 3},
		"DECIMAL(9, 2)":  {kind: "decimal", precision: 9, scale: 2},
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
		"":                                               false, // not shown to this login
	} {
		if _, got := allowedStatus(definition); got != proves {
			t.Errorf("%s proves status: %v, want %v", definition, got, proves)
		}
	}
}

func TestIndexProblem(t *testing.T) {
	good := index{filtered: true, filter: "([status]=(0))", key: []string{"event_type", "id"}}
	for name, c := range map[string]struct {
		change func(*index)
		number int32
	}{
		"none":            {func(*index) {}, 0},
		"other spelling":  {func(i *index) { i.filter = "status = 0" }, 0},
		"filter not seen": {func(i *index) { i.filter = "" }, 0},
		"no filter":       {func(i *index) { i.filtered, i.filter = false, "" }, 8622},
		"other filter":    {func(i *index) { i.filter = "([status]=(2))" }, 8622},
		"other key":       {func(i *index) { i.key = []string{"id"} }, 8622},
		"disabled":        {func(i *index) { i.disabled = true }, 315},
	} {
		i := good
		c.change(&i)
		number, problem := i.problem(Names{}.indexNeeds()[0])
		if number != c.number || (problem == "") != (number == 0) {
			t.Errorf("%s: %d %q, want %d", name, number, problem, c.number)
		}
	}
}
