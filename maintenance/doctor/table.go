package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// table compares the tables and indexes with what the worker needs, as
// outboxctl schema check does.
func (v *visit) table(ctx context.Context) ([]Finding, error) {
	const check = "table and indexes"
	i, err := sqlserver.Inspect(ctx, v.conn, sqlserver.InspectOptions{Names: v.Names, BlockSize: v.BlockSize})
	if err != nil {
		return nil, err
	}
	if len(i.Findings) == 0 {
		return one(check, OK, "as the worker needs them, "+quantity.Of(i.Rows, "row"), ""), nil
	}
	_, all, err := v.sight(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Finding, 0, len(i.Findings))
	for _, d := range i.Findings {
		if !all && strings.HasPrefix(d.Problem, sqlserver.NoSequence) {
			found = append(found, Finding{
				Check: d.Object, Verdict: Unknown, Found: "whether it is there is not shown without a right on it",
				Remedy: "run doctor once as someone who has it, a db_owner for one; a worker draws no ids and needs no such right",
			})
			continue
		}
		verdict := Warn
		if d.Severity == sqlserver.Must {
			verdict = NoGo
		}
		remedy := d.SQL
		if d.Adds { // pages of DDL, of a table that is missing
			remedy = "outboxctl schema apply" + v.Names.Flags() + " --execute adds it; without --execute it shows the SQL"
		}
		found = append(found, Finding{
			Check: d.Object, Verdict: verdict, Found: d.Problem,
			Remedy: strings.TrimSpace(d.Advice + "\n" + remedy),
		})
	}
	return found, nil
}

// rehearsal runs every statement of a worker with nothing to do, the claim with
// its hints among them, in a transaction that is rolled back: whether READPAST,
// ROWLOCK, UPDLOCK and READCOMMITTEDLOCK go together here, only the server knows.
func (v *visit) rehearsal(ctx context.Context) ([]Finding, error) {
	store, err := sqlserver.New(sqlserver.Config{DB: v.DB, Names: v.Names, Owner: "outboxctl doctor", Logger: v.Logger})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := store.Check(ctx); err != nil {
		verdict := NoGo
		if class := sqlserver.ClassOf(err); class == sqlserver.Transient || class == sqlserver.Contention {
			verdict = Unknown
		}
		return one("rehearsal", verdict, err.Error(), "this is what a worker would say when it starts, or wait for"), nil
	}
	return one("rehearsal", OK, "every statement of a worker ran, the claim with its hints too, and was rolled back", ""), nil
}

// plan asks the plan cache how the claim is really run. A worker that has never
// run has no plan; then there is nothing to say.
func (v *visit) plan(ctx context.Context) ([]Finding, error) {
	const check = "plan of the claim"
	r, err := diagnose.Run(ctx, diagnose.Config{DB: v.DB, Names: v.Names, Only: []string{"claim_plan"}})
	if err != nil {
		return nil, err
	}
	s := r.Sections[0]
	verdict := map[diagnose.Verdict]Verdict{diagnose.OK: OK, diagnose.Warn: Warn, diagnose.Bad: NoGo, diagnose.Unknown: Unknown}[s.Verdict]
	said := []string{s.Reason}
	ours := false
	for _, f := range s.Evidence.Findings {
		if f.Text != s.Reason { // why it is unknown is a finding too
			said = append(said, f.Text)
		}
		ours = ours || f.Verdict == diagnose.Bad && !f.Foreign
	}
	// What others run on the table, the worker before this one for instance, is dear,
	// and nothing against starting a worker.
	if verdict == NoGo && !ours {
		verdict = Warn
	}
	remedy := s.Remedy
	if strings.HasSuffix(s.Reason, " is missing.") { // a right is
		remedy = append(slices.Clone(remedy), "or run doctor once as someone who has it; a worker needs no such right")
	}
	return one(check, verdict, strings.TrimSpace(strings.Join(said, " ")), strings.Join(remedy, "\n")), nil
}

// deadlines holds the workers' settings together.
func (v *visit) deadlines(context.Context) ([]Finding, error) {
	const check = "lease and deadlines"
	if longest := worker.LongestPublishDeadline(v.Lease); v.PublishDeadline > longest {
		return one(check, NoGo, fmt.Sprintf("the publish deadline of %s is above %s, what a lease of %s leaves", v.PublishDeadline, longest, v.Lease),
			"raise --lease or lower --publish-deadline: after the lease another worker sends the same events"), nil
	}
	if v.SendTimeout >= v.PublishDeadline {
		return one(check, Warn, fmt.Sprintf("one send may take %s, the whole publish deadline of %s: there is no second try", v.SendTimeout, v.PublishDeadline),
			"lower --servicebus-send-timeout to half of the deadline"), nil
	}
	return one(check, OK, fmt.Sprintf("send %s, publish %s, lease %s: the living are not reaped", v.SendTimeout, v.PublishDeadline, v.Lease), ""), nil
}
