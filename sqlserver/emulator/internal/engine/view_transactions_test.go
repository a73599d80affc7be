package engine

import (
	"testing"
)

func TestOpenTransactionsShow(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, `BEGIN TRAN; BEGIN TRAN`)
	const transactions = `SELECT s.session_id, s.open_transaction_count, a.name, a.transaction_type, a.transaction_state,
		CASE WHEN a.transaction_begin_time BETWEEN DATEADD(MINUTE, -1, SYSUTCDATETIME()) AND DATEADD(SECOND, 1, SYSUTCDATETIME()) THEN 'now' END,
		d.database_id, d.database_transaction_log_bytes_used
		FROM sys.dm_tran_session_transactions AS s
		JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = s.transaction_id
		JOIN sys.dm_tran_database_transactions AS d ON d.transaction_id = s.transaction_id`
	spid := run(t, a, `SELECT @@SPID`).text()
	if got := must(t, b, transactions).text(); got != spid+"|2|user_transaction|1|2|now|5|NULL" {
		t.Errorf("got %q", got)
	}
	own := must(t, a, `SELECT CURRENT_TRANSACTION_ID()`).text()
	if got := must(t, b, `SELECT oldest_active_transaction_id, current_aborted_transaction_count, persistent_version_store_size_kb FROM sys.dm_tran_persistent_version_store_stats`).text(); got != own+"|0|NULL" {
		t.Errorf("version store: %q, want the transaction %s", got, own)
	}
	must(t, a, `ROLLBACK`)
	if got := must(t, b, transactions).text(); got != "" {
		t.Errorf("after the rollback: %q", got)
	}
}
