package engine

import (
	"math/bits"
	"strconv"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// tableHints are the hints of one table reference.
type tableHints struct {
	index     string // INDEX(name)
	indexID   int    // INDEX(n), -1 for none
	forceSeek bool
	// seekColumns are those of FORCESEEK (index (columns)).
	seekColumns []*ast.ColumnReferenceExpression
	forceScan   bool

	lock      storage.LockMode // U or X by UPDLOCK, XLOCK
	readPast  bool
	locked    bool // READCOMMITTEDLOCK
	dirty     bool // NOLOCK, READUNCOMMITTED
	hold      bool // HOLDLOCK, SERIALIZABLE, REPEATABLEREAD
	serial    bool // HOLDLOCK, SERIALIZABLE
	snapshot  bool
	tableLock storage.LockMode // S or X by TABLOCK, TABLOCKX
	noWait    bool
	// granularity and levels are the hints of the two groups of which one each may
	// be given (sql-docs, "Table hints"). Of READCOMMITTEDLOCK that page says the
	// first group; the server has it in the second, and takes it beside ROWLOCK.
	granularity, levels uint8
}

func (c *compiler) tableHints(list []ast.TableHintType) (*tableHints, error) {
	h := &tableHints{indexID: -1}
	for _, hint := range list {
		switch hint := hint.(type) {
		case *ast.IndexTableHint:
			if len(hint.IndexValues) != 1 {
				return nil, notModelled("INDEX hints with several indexes")
			}
			if err := h.setIndex(hint.IndexValues[0]); err != nil {
				return nil, err
			}
		case *ast.ForceSeekTableHint:
			h.forceSeek = true
			if hint.IndexValue != nil {
				if len(hint.ColumnValues) == 0 {
					return nil, errSyntax(")")
				}
				h.seekColumns = hint.ColumnValues
				if err := h.setIndex(hint.IndexValue); err != nil {
					return nil, err
				}
			}
		case *ast.TableHint:
			if err := h.set(hint.HintKind); err != nil {
				return nil, err
			}
		default:
			return nil, notModelled("the table hint %s", syntaxName(hint))
		}
	}
	several := func(set uint8) bool { return bits.OnesCount8(set) > 1 }
	switch {
	case several(h.granularity), several(h.levels), h.lock == storage.U|storage.X,
		h.dirty && (h.lock != 0 || h.granularity != 0):
		return nil, errHintConflict()
	case h.dirty && h.readPast:
		return nil, errReadPast()
	case h.forceSeek && h.forceScan:
		return nil, raiseBatch(10746, 15, 1, "The FORCESCAN hint is specified simultaneously with the FORCESEEK hint. Remove one of the hints and resubmit the query.")
	case h.snapshot:
		return nil, raiseBatch(367, 16, 1, "The hint 'SNAPSHOT' is valid only with memory optimized tables.")
	}
	return h, nil
}

func errReadPast() error {
	return raiseBatch(650, 16, 1, "You can only specify the READPAST lock in the READ COMMITTED or REPEATABLE READ isolation levels.")
}

func errHintConflict() error {
	return raiseBatch(1047, 15, 1, "Conflicting locking hints specified.")
}

// targetHints are the hints behind the table that a statement changes: fewer than
// in FROM (sql-docs, "Table hints", <table_hint_limited>). Named in the FROM of an
// UPDATE or DELETE, a dirty read of the target is passed over.
func (c *compiler) targetHints(list []ast.TableHintType, verb string) (*tableHints, error) {
	h, err := c.tableHints(list)
	switch {
	case err != nil:
		return nil, err
	case h.dirty:
		return nil, raiseBatch(1065, 15, 1, "The NOLOCK and READUNCOMMITTED lock hints are not allowed for target tables of INSERT, UPDATE, DELETE or MERGE statements.")
	case h.index != "" || h.indexID >= 0:
		return nil, raiseBatch(1069, 16, 1, "Index hints are only allowed in a FROM or OPTION clause.")
	case h.forceSeek:
		return nil, raiseBatch(10724, 15, 1, "The FORCESEEK hint is not allowed for target tables of INSERT, UPDATE, or DELETE statements.")
	case h.forceScan:
		return nil, raiseBatch(10745, 15, 1, "The FORCESCAN hint is not allowed for target tables of INSERT, UPDATE, or DELETE statements.")
	case h.readPast && verb == "INSERT":
		return nil, raiseBatch(4102, 15, 1, "The READPAST lock hint is only allowed on target tables of UPDATE and DELETE and on tables specified in an explicit FROM clause.")
	}
	return h, nil
}

func (h *tableHints) setIndex(v *ast.IdentifierOrValueExpression) error {
	if v.Identifier != nil {
		// the parser leaves the quotes of a name in a hint where they are
		h.index = nameParts(v.Identifier.Value)[0]
		return nil
	}
	n, err := strconv.Atoi(v.Value)
	if err != nil {
		return errSyntax(v.Value)
	}
	h.indexID = n
	return nil
}

// set knows every simple hint by the name that the parser gives it; one that
// is misspelled comes out of the parser unchanged.
func (h *tableHints) set(kind string) error {
	switch kind {
	case "UpdLock":
		h.lock |= storage.U
	case "XLock":
		h.lock |= storage.X
	case "ReadPast":
		h.readPast = true
	case "ReadCommittedLock":
		h.locked = true
		h.levels |= 8
	case "NoLock", "ReadUncommitted":
		h.dirty = true
		h.levels |= 16
	case "HoldLock", "Serializable":
		h.hold, h.serial = true, true
		h.levels |= 1
	case "RepeatableRead":
		h.hold = true
		h.levels |= 2
	case "Snapshot":
		h.snapshot = true
	case "TabLock":
		h.tableLock |= storage.S
		h.granularity |= 1
	case "TabLockX":
		h.tableLock |= storage.X
		h.granularity |= 8
	case "NoWait":
		h.noWait = true
	case "ForceSeek":
		h.forceSeek = true
	case "ForceScan":
		h.forceScan = true
	case "Rowlock", "RowLock":
		h.granularity |= 2
	case "PagLock":
		h.granularity |= 4
	case "ReadCommitted":
		h.levels |= 4
	case "KeepIdentity", "KeepDefaults", "IgnoreConstraints":
	default:
		return raiseBatch(321, 15, 1, "\"%s\" is not a recognized table hints option. If it is intended as a parameter to a table-valued function or to the CHANGETABLE function, ensure that your database compatibility mode is set to 90.", kind)
	}
	return nil
}

// lockRequest turns hints, isolation level and the statement's own need into a
// storage request. target says that the statement changes the table.
func (h *tableHints) lockRequest(e *env, target bool) (storage.ScanRequest, error) {
	iso := e.x.isolation()
	r := storage.ScanRequest{ReadPast: h.readPast, NoWait: h.noWait}
	if h.readPast && iso != storage.ReadCommitted && iso != storage.RepeatableRead {
		return r, errReadPast()
	}
	if h.readPast && h.hold {
		return r, errReadPast()
	}
	lock := h.lock
	if target && lock == 0 {
		lock = storage.U
	}
	if lock&storage.X != 0 {
		lock = storage.X
	}
	// there are no key-range locks: the whole table keeps phantoms away
	r.TableLock = h.tableLock != 0 || h.serial
	r.Hold = h.hold || iso == storage.RepeatableRead || iso == storage.Serializable
	switch {
	case h.tableLock&storage.X != 0:
		r.Mode, r.Lock = storage.ReadLocked, storage.X
	case lock != 0:
		r.Mode, r.Lock = storage.ReadLocked, lock
	case h.dirty || (iso == storage.ReadUncommitted && !h.locked && !r.Hold && h.tableLock == 0):
		r.Mode = storage.ReadDirty
	case h.locked, r.Hold, h.tableLock != 0:
		r.Mode, r.Lock = storage.ReadLocked, storage.S
	case iso == storage.Snapshot, e.x.s.engine.database.readCommittedSnapshot.Load():
		r.Mode = storage.ReadVersion
	default:
		r.Mode, r.Lock = storage.ReadLocked, storage.S
	}
	return r, nil
}

// isolation is the level in force: a transaction under SNAPSHOT keeps it.
func (x *exec) isolation() storage.Isolation { return x.s.set.isolation }
