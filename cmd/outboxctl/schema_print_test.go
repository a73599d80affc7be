package main

import (
	"encoding/json"
	"strings"
	"testing"

	"azsqloutbox/scripts"
)

func TestSchemaPrint(t *testing.T) {
	asItIs, err := scripts.Outbox(scripts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	enqueue, err := scripts.Enqueue(scripts.Options{Schema: "sales", EventType: "INT"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := scripts.Outbox(scripts.Options{
		Table: "events", ClaimIndex: "IX c", EventType: "INT", Aggregate: "NVARCHAR(50)", TextCollation: "Latin1_General_CI_AS",
		Payload: "NVARCHAR(MAX)", Collation: "database_default", SlimClaimIndex: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, asItIs},
		{[]string{"--enqueue", "--schema=sales", "--event-type=int"}, enqueue},
		{[]string{
			"--table=events", "--claim-index=IX c", "--event-type=int", "--aggregate=nvarchar(50)", "--text-collation=Latin1_General_CI_AS",
			"--payload=nvarchar(max)", "--collation=database_default", "--slim",
		}, other},
	} {
		code, stdout, stderr := outboxctl(t, append([]string{"schema", "print"}, c.args...)...)
		if code != exitDone || stderr != "" || stdout != c.want {
			t.Errorf("%v: exit %d, stderr %q, stdout\n%s", c.args, code, stderr, stdout)
		}
	}
	_, stdout, _ := outboxctl(t, "schema", "print", "--json")
	var printed map[string]string
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil || len(printed) != 1 || printed["script"] != asItIs {
		t.Errorf("%v in %s", err, stdout)
	}
}

func TestSchemaPrintRefusesTypes(t *testing.T) {
	for _, arg := range []string{"--payload=TEXT", "--event-type=VARCHAR(MAX)", "--aggregate=INT", "--collation=a b", "--payload=VARCHAR(9000)"} {
		code, stdout, stderr := outboxctl(t, "schema", "print", arg)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", arg, code, stdout, stderr)
		}
	}
}
