package engine

import (
	"strings"
	"testing"
)

func TestWaitingTasksNameWhatTheyWaitFor(t *testing.T) {
	e := newEngine(t)
	a, b, watcher := open(t, e), open(t, e), open(t, e)
	must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
	if got := must(t, watcher, `SELECT COUNT(*) FROM sys.dm_os_waiting_tasks`).text(); got != "0" {
		t.Errorf("nobody waits: %q", got)
	}
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 2 WHERE id = 1`)
	spids := run(t, b, `SELECT @@SPID`).text() + "|" + run(t, a, `SELECT @@SPID`).text()
	done := start(b, `UPDATE t SET v = 3 WHERE id = 1`)
	untilWaiting(t, e)
	hobt := run(t, watcher, `SELECT hobt_id FROM sys.partitions`).text()
	if got := must(t, watcher, `SELECT session_id, blocking_session_id, wait_type, resource_description FROM sys.dm_os_waiting_tasks`).text(); got != spids+"|LCK_M_U|keylock hobtid="+hobt+" dbid=5 mode=X associatedObjectId="+hobt {
		t.Errorf("got %q", got)
	}
	if got := must(t, watcher, `SELECT wait_resource FROM sys.dm_exec_requests WHERE blocking_session_id > 0`).text(); !strings.HasPrefix(got, "KEY: 5:"+hobt+" (") {
		t.Errorf("wait_resource: %q", got)
	}
	must(t, a, `COMMIT`)
	<-done
}
