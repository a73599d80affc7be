package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// Open user transactions, as their sessions last published them. There is no log
// here: what counts its records and bytes is NULL.

var _ = registerViews(map[string]*view{
	"sys.dm_tran_active_transactions":            {activeTransactionCols, activeTransactionRows},
	"sys.dm_tran_session_transactions":           {sessionTransactionCols, sessionTransactionRows},
	"sys.dm_tran_database_transactions":          {databaseTransactionCols, databaseTransactionRows},
	"sys.dm_tran_persistent_version_store_stats": {versionStoreCols, versionStoreRows},
})

// openTransaction is one row of the views.
type openTransaction struct {
	session *session
	sessionState
}

func (s *session) openTransactions() []openTransaction {
	var list []openTransaction
	s.engine.eachSession(func(o *session) {
		st := *o.shown.Load()
		if o == s {
			st = s.state()
		}
		if st.transaction != 0 {
			list = append(list, openTransaction{o, st})
		}
	})
	return list
}

// The columns are those of sys-dm-tran-…-transactions-transact-sql.md in sql-docs.
var activeTransactionCols = documented(`
	transaction_id bigint; name nvarchar(32); transaction_begin_time datetime; transaction_type int; transaction_uow uniqueidentifier;
	transaction_state int; transaction_status int; transaction_status2 int; dtc_state int; dtc_status int; dtc_isolation_level int;
	filestream_transaction_id varbinary(128)`)

func activeTransactionRows(s *session) [][]sqltype.Value {
	return eachRow(s.openTransactions(), func(t openTransaction) []sqltype.Value {
		return partRow(activeTransactionCols, map[string]any{
			"transaction_id": int64(t.transaction), "name": t.transactionName, "transaction_begin_time": t.transactionBegan,
			"transaction_type": 1, "transaction_state": 2, "dtc_state": 0,
		})
	})
}

var sessionTransactionCols = documented(`
	session_id int; transaction_id bigint; transaction_descriptor binary(8); enlist_count int; is_user_transaction bit; is_local bit;
	is_enlisted bit; is_bound bit; open_transaction_count int`)

func sessionTransactionRows(s *session) [][]sqltype.Value {
	return eachRow(s.openTransactions(), func(t openTransaction) []sqltype.Value {
		return partRow(sessionTransactionCols, map[string]any{
			"session_id": t.session.spid(), "transaction_id": int64(t.transaction), "is_user_transaction": true, "is_local": true,
			"is_enlisted": false, "is_bound": false, "open_transaction_count": t.transactions,
		})
	})
}

var databaseTransactionCols = documented(`
	transaction_id bigint; database_id int; database_transaction_begin_time datetime; database_transaction_type int;
	database_transaction_state int; database_transaction_status int; database_transaction_status2 int;
	database_transaction_log_record_count bigint; database_transaction_replicate_record_count int;
	database_transaction_log_bytes_used bigint; database_transaction_log_bytes_reserved bigint;
	database_transaction_log_bytes_used_system int; database_transaction_log_bytes_reserved_system int;
	database_transaction_begin_lsn decimal(25,0); database_transaction_last_lsn decimal(25,0);
	database_transaction_most_recent_savepoint_lsn decimal(25,0); database_transaction_commit_lsn decimal(25,0);
	database_transaction_last_rollback_lsn decimal(25,0); database_transaction_next_undo_lsn decimal(25,0)`)

func databaseTransactionRows(s *session) [][]sqltype.Value {
	return eachRow(s.openTransactions(), func(t openTransaction) []sqltype.Value {
		return partRow(databaseTransactionCols, map[string]any{
			"transaction_id": int64(t.transaction), "database_id": databaseID, "database_transaction_type": 1, "database_transaction_replicate_record_count": 0,
		})
	})
}

var versionStoreCols = documented(`
	database_id int; pvs_filegroup_id smallint; persistent_version_store_size_kb bigint; online_index_version_store_size_kb bigint;
	current_aborted_transaction_count bigint; oldest_active_transaction_id bigint; oldest_aborted_transaction_id bigint;
	min_transaction_timestamp bigint; online_index_min_transaction_timestamp bigint; secondary_low_water_mark bigint;
	offrow_version_cleaner_start_time datetime2; offrow_version_cleaner_end_time datetime2; aborted_version_cleaner_start_time datetime2;
	aborted_version_cleaner_end_time datetime2; pvs_off_row_page_skipped_low_water_mark bigint;
	pvs_off_row_page_skipped_transaction_not_cleaned bigint; pvs_off_row_page_skipped_oldest_active_xdesid bigint;
	pvs_off_row_page_skipped_min_useful_xts bigint; pvs_off_row_page_skipped_oldest_snapshot bigint`)

// versionStoreRows: a rollback is over when it returns, so that no transaction
// stays aborted. Sizes are NULL.
func versionStoreRows(s *session) [][]sqltype.Value {
	if s.engine.config.Edition.boxed() { // accelerated database recovery is off
		return nil
	}
	var oldest any
	for _, t := range s.openTransactions() {
		if id := int64(t.transaction); oldest == nil || id < oldest.(int64) {
			oldest = id
		}
	}
	return [][]sqltype.Value{partRow(versionStoreCols, map[string]any{
		"database_id": databaseID, "current_aborted_transaction_count": 0, "oldest_active_transaction_id": oldest,
	})}
}
