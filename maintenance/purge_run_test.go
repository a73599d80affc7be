package maintenance_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
)

// What may go and what may not, one row each.
func TestPurgeDeletesOldProcessedEventsOnly(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	for id, row := range map[int]string{
		1:  "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -9, @now)",                        // goes
		2:  "1, DATEADD(DAY, -9, @now), DATEADD(SECOND, 5, DATEADD(HOUR, -72, @now))",  // too young
		3:  "1, DATEADD(DAY, -9, @now), DATEADD(SECOND, -5, DATEADD(HOUR, -72, @now))", // goes
		4:  "0, DATEADD(DAY, -9, @now), NULL",                                          // PENDING
		5:  "0, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // PENDING, whatever its time
		6:  "2, DATEADD(DAY, -9, @now), NULL",                                          // FAILED
		7:  "2, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // FAILED
		8:  "1, DATEADD(DAY, -9, @now), NULL",                                          // nobody knows when
		9:  "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // goes, behind all of them
		10: "1, DATEADD(HOUR, -1, @now), DATEADD(HOUR, -1, @now)",                      // young
		-3: "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -9, @now)",                        // goes: a negative id
	} {
		b.exec(fmt.Sprintf(`DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
			INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers, status, created_at, processed_at)
			VALUES (%d, 'order', '42', 'placed', 'äöü', '{}', %s)`, id, row))
	}
	plan, err := b.purge().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan.EstimatedRows != 4 || !plan.Exact || plan.TableRows != 11 || plan.Oldest.ID != -3 {
		t.Errorf("the plan is %+v", plan)
	}
	if n := len(b.ids()); n != 11 {
		t.Fatalf("the plan left %d of 11 rows", n)
	}
	r := b.run(b.purge())
	if got, want := b.ids(), []int64{2, 4, 5, 6, 7, 8, 10}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if r.Rows != 4 || r.PendingRows != 2 || r.FailedRows != 2 || r.UnstampedRows != 1 || r.Stopped != maintenance.StopDone || r.Windows != 1 || r.Batches != 1 {
		t.Errorf("the result is %+v", r)
	}
	// 4 + 48 fixed + 4 of NULL bitmap + 14 of offsets + 2, and the texts.
	if want := int64(4 * (4 + (8 + 1 + 7 + 7 + 7 + 4) + (2 + 2) + (2 + 2*6) + 2 + len("order42placedäöü{}"))); r.BytesFreed != want || plan.EstimatedBytes != want {
		t.Errorf("freed %d bytes, estimated %d, want %d", r.BytesFreed, plan.EstimatedBytes, want)
	}
	if again := b.run(b.purge()); again.Rows != 0 || again.Stopped != maintenance.StopDone {
		t.Errorf("a second purge: %+v", again)
	}
}

func TestPurgeOfAnEmptyTable(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	if r := b.run(b.purge()); r.Rows != 0 || r.Stopped != maintenance.StopDone || r.Oldest != nil || !r.Exact {
		t.Errorf("%+v", r)
	}
}

// What a receipt may name stays, whoever wrote it and whether or not its ids
// can be read.
func TestPurgeKeepsWhatOpenReceiptsMayName(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 5, "DAY, -9")
	b.processed(6, 5, "DAY, -5")
	b.processed(11, 5, "DAY, -4")
	b.exec(`INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT NEWID(), 'another version', 'placed', processed_at, DATEADD(MINUTE, 1, processed_at), 7, '<6 to 12>' FROM dbo.outbox_event WHERE id = 6;
		INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT NEWID(), 'ours', 'placed', SYSUTCDATETIME(), DATEADD(MINUTE, 1, SYSUTCDATETIME()), 1, '[99]'`)
	r := b.run(b.purge())
	if got, want := b.ids(), []int64{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if h := r.HeldBackBy; h == nil || h.Owner != "another version" || r.OpenReceipts != 2 || !r.Cutoff.Equal(h.ClaimedAt) {
		t.Errorf("held back by %+v, result %+v", h, r)
	}
	b.exec(`DELETE FROM dbo.outbox_event_claim WHERE owner = 'another version'`)
	if r := b.run(b.purge()); r.Rows != 10 || r.HeldBackBy != nil {
		t.Errorf("without it: %+v", r)
	}
}

// A claim that is given back between plan and walk holds nothing back any more.
func TestPurgeForgetsAReceiptThatIsSettled(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 5, "DAY, -5")
	b.exec(`INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT NEWID(), 'w', 'placed', processed_at, DATEADD(MINUTE, 1, processed_at), 1, '[1]' FROM dbo.outbox_event WHERE id = 1`)
	p := b.purge()
	p.Progress = func(maintenance.Progress) { b.exec(`DELETE FROM dbo.outbox_event_claim`) }
	if r := b.run(p); r.Rows != 5 || r.HeldBackBy != nil {
		t.Errorf("deleted %d of 5, held back by %+v", r.Rows, r.HeldBackBy)
	}
}

// Ids are no order of time: a block that was taken early and used late must not
// end the walk.
func TestPurgePassesYoungRowsBetweenOldOnes(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 300, "HOUR, -1") // a writer's block, late
	b.processed(1001, 700, "DAY, -4")
	b.processed(2001, 9000, "HOUR, -2")
	b.processed(20001, 50, "DAY, -4") // behind more than any block: the next run's
	p := b.purge()
	p.Batch = 100
	r := b.run(p)
	if r.Rows != 700 || r.Stopped != maintenance.StopDone {
		t.Errorf("%+v", r)
	}
	if r.Windows > 3+7+41 {
		t.Errorf("%d windows were looked at: the walk did not end", r.Windows)
	}
}

func TestPurgeWalksInBatches(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 5000, "DAY, -4")
	b.processed(5001, 100, "HOUR, -4")
	p := b.purge()
	var reports []maintenance.Progress
	p.Progress = func(r maintenance.Progress) { reports = append(reports, r) }
	r := b.run(p)
	if r.Rows != 5000 || len(b.ids()) != 100 || r.Batches < 3 || r.RowsPerSecond <= 0 || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	if len(reports) != int(r.Batches)+1 {
		t.Fatalf("%d reports of %d batches", len(reports), r.Batches)
	}
	if first, last := reports[0], reports[len(reports)-1]; first.Done != 0 || first.Total != 5000 || last.Done != 5000 || last.Unit != "rows" {
		t.Errorf("reports from %+v to %+v", first, last)
	}
}

// What a run reads depends on what it deletes, not on the table.
func TestPurgeReadsTheSameWhateverTheTable(t *testing.T) {
	var read []map[string]int64
	for _, young := range []int{20_000, 40_000} {
		b := newPurgeOutbox(t, scripts.Options{})
		b.processed(1, 3000, "DAY, -4")
		b.processed(10_001, young, "HOUR, -4")
		if r := b.run(b.purge()); r.Rows != 3000 {
			t.Errorf("%+v", r)
		}
		read = append(read, reads(b, b.engine, "PurgeLook", "PurgeNewest", "PurgeDelete"))
	}
	if !maps.Equal(read[0], read[1]) || read[0]["PurgeDelete"] < 3000 || read[0]["PurgeDelete"] > 5000 {
		t.Errorf("rows read in a table of 23,000: %v, of 43,000: %v", read[0], read[1])
	}
}
