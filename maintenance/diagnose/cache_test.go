package diagnose

import "testing"

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text, table string
		want        bool
	}{
		{"SELECT id FROM dbo.outbox_event WHERE id = 1", "outbox_event", true},
		{"select id from [dbo].[OUTBOX_EVENT]", "outbox_event", true},
		{"delete from dbo.outbox_event_claim", "outbox_event", true},
		{"SELECT NEXT VALUE FOR dbo.outbox_event_seq", "outbox_event", true},
		{"UPDATE dbo.outbox_event_control SET paused = 1", "outbox_event", true},
		{"EXEC dbo.outbox_event_enqueue @events", "outbox_event", true},
		{"SELECT 1 FROM dbo.outbox_event_archive", "outbox_event", false},
		{"SELECT 1 FROM dbo.outbox_event_claims", "outbox_event", false},
		{"SELECT 1 FROM dbo.my_outbox_event", "outbox_event", false},
		{"SELECT 1 FROM dbo.größeoutbox_event", "outbox_event", false},
		{"SELECT 1 FROM dbo.outbox_eventé", "outbox_event", false},
		{"SELECT 1 FROM old_outbox_event JOIN outbox_event ON 1 = 1", "outbox_event", true},
		{"SELECT 1 FROM outbox_event", "outbox_event", true},
		{"SELECT 1 FROM [it's ]]odd[]", "it's ]odd[", true},
		{"", "outbox_event", false},
	} {
		if got := mentionsOutbox(c.text, c.table); got != c.want {
			t.Errorf("%q mentions %q: %v", c.text, c.table, got)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		batch, text, want string
	}{
		{"(@batch int,@t varchar(max))SELECT /* outbox:ClaimEvents */ 1", "SELECT /* outbox:ClaimEvents */ 1", "ClaimEvents SELECT"},
		{"(@p1 nvarchar(4000))DECLARE @x INT; UPDATE /* outbox:FlipClaim */ e SET", "UPDATE /* outbox:FlipClaim */ e SET", "FlipClaim UPDATE"},
		{"(@P0 nvarchar(4000),@P1 int)select  id\n\tfrom t", "(@P0 nvarchar(4000),@P1 int)select  id\n\tfrom t", "select id from t"},
		{"/* hint */ (SELECT 1)", "/* hint */ (SELECT 1)", "(SELECT 1)"},
	} {
		s := cachedStatement{name: statementName(c.batch), text: c.text}
		if got := s.label(); got != c.want {
			t.Errorf("%q is called %q, want %q", c.batch, got, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value any
		unit  Unit
		want  string
	}{
		{nil, Bytes, "–"},
		{45_000_000, Count, "45,000,000"},
		{-1234.0, Count, "-1,234"},
		{0.333333, Ratio, "0.333 ×"},
		{12.345, Percent, "12.3 %"},
		{3.0, Pages, "3"},
		{1331.0, Bytes, "1.3 KB"},
		{41.5 * (1 << 30), Bytes, "41.5 GB"},
		{96.0 * (1 << 20), BytesPerSec, "96 MB/s"},
		{0.06, Milliseconds, "60 µs"},
		{142.0, Milliseconds, "142 ms"},
		{61_000.0, Milliseconds, "61 s"},
		{7_900_000.0, Milliseconds, "2h12m"},
		{0.0, Milliseconds, "0"},
		{noon, Moment, "2026-11-30 12:00:00"},
		{true, Text, "yes"},
	} {
		if got := format(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestSparkline(t *testing.T) {
	if got := sparkline([]float64{0, 12.5, 50, 99, 100, 140}, 100, 10); got != "▁▂▅███" {
		t.Errorf("got %s", got)
	}
	if got := sparkline([]float64{1, 1, 1, 100, 1, 1}, 100, 3); got != "▁█▁" {
		t.Errorf("a peak is lost: %s", got)
	}
	if got := sparkline(nil, 100, 10); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}
