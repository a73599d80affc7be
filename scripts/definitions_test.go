package scripts

import (
	"strings"
	"testing"
)

func TestDefinitions(t *testing.T) {
	d, err := Define(Options{Table: "it's [mine]", Payload: "NVARCHAR(MAX)", Collation: "database_default", ClaimIndex: "IX x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of            TableDefinition
		columns       int
		create, first string
	}{
		{d.Events, 12, "IF OBJECT_ID(N'[dbo].[it''s [mine]]]', N'U') IS NULL", "id BIGINT NOT NULL"},
		{d.Receipts, 7, "IF OBJECT_ID(N'[dbo].[it''s [mine]]_claim]', N'U') IS NULL", "claim_id UNIQUEIDENTIFIER NOT NULL"},
		{d.Workers, 11, "IF OBJECT_ID(N'[dbo].[it''s [mine]]_worker]', N'U') IS NULL", "owner VARCHAR(100) NOT NULL"},
		{d.Controls, 6, "IF OBJECT_ID(N'[dbo].[it''s [mine]]_control]', N'U') IS NULL", "scope VARCHAR(20) NOT NULL"},
	} {
		if len(c.of.Columns) != c.columns || c.of.Columns[0].Definition != c.first || !strings.HasPrefix(c.of.Create, c.create) {
			t.Errorf("got %d columns, the first %q, in %q", len(c.of.Columns), c.of.Columns[0].Definition, c.of.Create)
		}
	}
	for name, want := range map[string]string{
		"payload":     "payload NVARCHAR(MAX) COLLATE database_default NOT NULL",
		"retry_count": "retry_count INT NOT NULL CONSTRAINT [DF_it's [mine]]_retry_count] DEFAULT (0)",
		"last_error":  "last_error VARCHAR(400) NULL",
	} {
		got := ""
		for _, c := range d.Events.Columns {
			if c.Name == name {
				got = c.Definition
			}
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{
		d.Sequence:   "IF OBJECT_ID(N'[dbo].[it''s [mine]]_seq]', N'SO') IS NULL",
		d.ClaimIndex: "name = N'IX x')",
		d.RetryIndex: "name = N'IX_outbox_retry')",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
