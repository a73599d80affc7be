package sizing_test

import (
	"math"
	"testing"

	"azsqloutbox/maintenance/sizing"
)

// near compares within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s is %.4g, want %.4g", what, got, want)
	}
}

// event is the row of scripts/001_outbox.sql with a payload of that many bytes,
// as the article of Azure SQL measured it: 600 characters.
func event(payloadBytes float64) sizing.Row {
	return sizing.Row{
		Columns: 12, FixedBytes: 8 + 1 + 7 + 7 + 7 + 4, VariableColumns: 6,
		VariableBytes: payloadBytes + 5 + 12 + 15, Versioned: true,
	}
}

func TestTheArticlesTable(t *testing.T) {
	row := event(1200).Bytes()
	near(t, "a row with 600 characters of NVARCHAR", row, 1.3*sizing.KB, 0.03)
	near(t, "45 M rows", sizing.TableBytes(45_000_000, row, 100), 58*sizing.GB, 0.02)
	near(t, "six rows a page", sizing.TableBytes(6, row, 100), sizing.PageBytes, 0)
	near(t, "what FILLFACTOR 85 wastes", sizing.Emptiness(58*sizing.GB, 85, 100), 9*sizing.GB, 0.05)
	near(t, "the same table with VARCHAR", sizing.TableBytes(45_000_000, event(600).Bytes(), 98), 31*sizing.GB, 0.05)

	covering := sizing.IndexLog{EntryBytes: row - 40, PendingOnly: true}
	near(t, "log per event, covering claim index", sizing.LogPerEvent(row, covering), 4*1.2*sizing.KB, 0.25)
	slim := sizing.IndexLog{EntryBytes: 40, PendingOnly: true}
	near(t, "log per event, slim claim index", sizing.LogPerEvent(row, slim)/sizing.LogPerEvent(row, covering), 0.57, 0.1)
}

func TestStatusInTheKeyMovesTheWholeEntry(t *testing.T) {
	wide := sizing.IndexLog{EntryBytes: 1300, StatusKey: true}
	filtered := sizing.IndexLog{EntryBytes: 1300, PendingOnly: true}
	if got := wide.PerEvent() / filtered.PerEvent(); got != 2 {
		t.Errorf("%.2f times the log of a filtered index, want 2", got)
	}
	if got := (sizing.IndexLog{EntryBytes: 1300, PendingOnly: true, StatusKey: true}).PerEvent(); got != filtered.PerEvent() {
		t.Errorf("with status in the key of a filtered index %.0f bytes, want %.0f: the flip takes the entry out", got, filtered.PerEvent())
	}
	if got := (sizing.IndexLog{EntryBytes: 1300, FailedOnly: true}).PerEvent(); got != 0 {
		t.Errorf("an index of failed events costs %.0f bytes an event", got)
	}
}

func TestObjectives(t *testing.T) {
	for _, c := range []struct {
		name                  string
		memory, log, inMemory float64
	}{
		{"BC_Gen5_8", 41.5, 96, 6.28},
		{"BC_Gen5_2", 10.4, 24, 1.57},
		{"GP_Gen5_2", 10.4, 9, 0},
		{"GP_Gen5_10", 51.9, 45, 0},
		{"GP_Gen5_16", 83, 50, 0},
		{"GP_S_Gen5_4", 12, 18, 0},
		{"HS_Gen5_32", 166.1, 100, 0},
	} {
		o, ok := sizing.ParseObjective(c.name)
		if !ok {
			t.Errorf("%s is not known", c.name)
			continue
		}
		near(t, c.name+" memory", o.MemoryBytes(), c.memory*sizing.GB, 0.003)
		near(t, c.name+" log rate", o.LogBytesPerSecond(), c.log*sizing.MB, 1e-9)
		if got := o.InMemoryBytes(); got != c.inMemory*sizing.GB {
			t.Errorf("%s In-Memory OLTP: %.0f", c.name, got)
		}
	}
	for _, name := range []string{"", "S3", "P11", "ElasticPool", "GP_Gen5", "GP_Gen5_0", "BC_M_8", "GP_DC_2", "System2"} {
		if o, ok := sizing.ParseObjective(name); ok {
			t.Errorf("%q became %+v", name, o)
		}
	}
}

func TestInstances(t *testing.T) {
	for _, c := range []struct {
		tier  string
		cores int
		want  float64
	}{{"General Purpose", 8, 24}, {"General Purpose", 80, 120}, {"Business Critical", 8, 32}, {"Business Critical", 40, 96}} {
		if got := sizing.InstanceLogBytesPerSecond(c.tier, c.cores); got != c.want*sizing.MB {
			t.Errorf("%s with %d: %.0f", c.tier, c.cores, got)
		}
	}
}

func TestRowsPerPage(t *testing.T) {
	for _, c := range []struct {
		row, fill float64
		fit       int64
	}{
		{100, 0, 79}, {100, 100, 79}, {100, 50, 39}, {4046, 100, 2}, {8060, 100, 1}, {20000, 100, 1},
	} {
		for rows, pages := range map[int64]float64{0: 0, c.fit: 1, c.fit + 1: 2} {
			if got := sizing.TableBytes(rows, c.row, c.fill); got != pages*sizing.PageBytes {
				t.Errorf("%d rows of %v bytes at %v %% take %v bytes, want %v pages", rows, c.row, c.fill, got, pages)
			}
		}
	}
	if got := sizing.Emptiness(100, 99, 98); got != 0 {
		t.Errorf("fuller than asked for wastes %v", got)
	}
}
