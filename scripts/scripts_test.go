package scripts

import (
	"strings"
	"testing"
)

func TestDefaultsAreTheFiles(t *testing.T) {
	for name, f := range map[string]struct {
		render func(Options) (string, error)
		file   string
	}{
		"001_outbox.sql":  {Outbox, outbox},
		"010_enqueue.sql": {Enqueue, enqueue},

		"090_grants.sql":     {Grants, grants},
		"091_job_grants.sql": {JobGrants, jobGrants},
	} {
		got, err := f.render(Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got != f.file {
			t.Errorf("%s is not rendered as it is on disk", name)
		}
	}
}

func TestFilesBeginWithTheOptionsOfFilteredIndexes(t *testing.T) {
	for name, file := range map[string]string{"001_outbox.sql": outbox, "010_enqueue.sql": enqueue} {
		first := Batches(file)[0]
		for _, set := range []string{"SET QUOTED_IDENTIFIER ON;", "SET ANSI_NULLS ON;"} {
			if !strings.Contains(first, set) {
				t.Errorf("the first batch of %s lacks %s", name, set)
			}
		}
	}
}

func TestRenderOtherNames(t *testing.T) {
	o := Options{
		Schema: "my schema", Table: "it's ]odd[", ClaimIndex: "IX'a]b", RetryIndex: "IX retry",
		EventType: "INT", Payload: "NVARCHAR(MAX)", Collation: "database_default", SlimClaimIndex: true,
	}
	got, err := Outbox(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`CREATE TABLE [my schema].[it's ]]odd[] (`,
		`OBJECT_ID(N'[my schema].[it''s ]]odd[]', N'U')`,
		`CONSTRAINT [PK_it's ]]odd[] PRIMARY KEY`,
		`CREATE SEQUENCE [my schema].[it's ]]odd[_seq]`,
		`CREATE TABLE [my schema].[it's ]]odd[_claim] (`,
		`name = N'IX''a]b'`,
		`CREATE NONCLUSTERED INDEX [IX'a]]b]`,
		`/*event_type*/ INT NOT NULL`,
		`/*payload*/ NVARCHAR(MAX) COLLATE /*collation*/ database_default NOT NULL`,
		`/*headers*/ NVARCHAR(2000) COLLATE /*collation*/ database_default NULL`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("rendered script lacks %s", want)
		}
	}
	for _, not := range []string{"outbox_event]", "INCLUDE", "[dbo]"} {
		if strings.Contains(withoutComments(got), not) {
			t.Errorf("rendered script still has %s", not)
		}
	}
}

func withoutComments(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What the head of the grants tells people to run is about the role that is made.
func TestTheHeadOfTheGrantsNamesTheRole(t *testing.T) {
	for _, render := range []func(Options) (string, error){Grants, JobGrants} {
		got, err := render(Options{Table: "odd]"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, "--   ALTER ROLE [odd]]_") || strings.Contains(got, "outbox_event_") {
			t.Errorf("it says:\n%s", got)
		}
		const breakOut = "x\nDROP TABLE y --"
		if got, err = render(Options{Table: breakOut}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "--") && strings.Contains(line, "[x") {
				t.Errorf("the comment %q ends inside of the name", line)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for field, o := range map[string]Options{
		"option Payload":       {Payload: "VARCHAR(10); DROP TABLE x"},
		"of at most 8000":      {Payload: "NVARCHAR(4001)"},
		"option EventType":     {EventType: "TEXT"},
		"of at most 1692":      {EventType: "VARCHAR(1693)"},
		"option Aggregate":     {Aggregate: "VARCHAR(MAX)"},
		"option Collation":     {Collation: "Latin1] x"},
		"option TextCollation": {TextCollation: "Latin1] x"},
		"option Table":         {Table: "a\x00b"},
		"characters":           {Table: strings.Repeat("t", 120)},
	} {
		if _, err := Outbox(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got error %v, want one that names %s", o, err, field)
		}
	}
}

func TestRenderTakesTheLargestTypes(t *testing.T) {
	for _, o := range []Options{
		{EventType: "VARCHAR(1692)", Payload: "VARCHAR(8000)", Aggregate: "NVARCHAR(4000)"},
		{EventType: "NVARCHAR(846)", Payload: "NVARCHAR(4000)"},
	} {
		if _, err := Outbox(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestRenameIsStrict(t *testing.T) {
	if _, err := (Options{}).render("SELECT 1 FROM [unheard_of]"); err == nil {
		t.Error("an unknown identifier was let through")
	}
	if _, err := (Options{}).render("x /*unheard_of*/ INT"); err == nil {
		t.Error("an unknown marker was let through")
	}
}

func TestBatchesOfNamesWithQuotes(t *testing.T) {
	script, err := Outbox(Options{Table: `it's "mine"`})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(Batches(script)); got != 8 {
		t.Errorf("%d batches, want 8", got)
	}
}
