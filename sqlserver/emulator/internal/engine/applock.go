package engine

import (
	"errors"
	"strings"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// appLockModes are sp_getapplock's @LockMode.
var appLockModes = map[string]storage.LockMode{
	"shared": storage.S, "update": storage.U, "exclusive": storage.X,
	"intentshared": storage.IS, "intentexclusive": storage.IX,
}

// The return codes of sp_getapplock (sql-docs). It reports failure by them,
// not by errors.
const (
	appLockWaited   = 1
	appLockTimeout  = -1
	appLockDeadlock = -3
	appLockInvalid  = -999
)

func getAppLock(x *exec, args []argument) (int32, error) {
	if err := knows("sp_getapplock", args, "@Resource", "@LockMode", "@LockOwner", "@LockTimeout", "@DbPrincipal"); err != nil {
		return 0, err
	}
	resource := textOf(args, "@Resource", 0)
	mode, ok := appLockModes[strings.ToLower(textOf(args, "@LockMode", 1))]
	if !ok || resource == "" {
		return appLockInvalid, nil
	}
	owner := strings.ToLower(textOf(args, "@LockOwner", 2))
	timeout := x.s.set.lockTimeout
	if a := named(args, "@LockTimeout", 3); a != nil && !a.value.IsNull() {
		v, err := sqltype.Convert(a.value, intType, 0)
		if err != nil {
			return appLockInvalid, err
		}
		timeout = time.Duration(v.N) * time.Millisecond
		if v.N < 0 {
			timeout = storage.Forever
		}
	}
	var waited bool
	var err error
	switch owner {
	case "session":
		waited, err = x.s.store.AppLock(x.ctx, resource, mode, timeout)
	case "", "transaction":
		if x.s.tran == nil {
			return appLockInvalid, nil // sql-docs: a transaction owner needs a transaction
		}
		waited, err = x.s.tran.tx.AppLock(x.ctx, resource, mode, timeout)
	default:
		return appLockInvalid, nil
	}
	switch {
	case errors.Is(err, storage.ErrLockTimeout):
		return appLockTimeout, nil
	case errors.Is(err, storage.ErrDeadlock):
		return appLockDeadlock, nil
	case err != nil:
		return 0, err
	case waited:
		return appLockWaited, nil
	}
	return 0, nil
}

func releaseAppLock(x *exec, args []argument) (int32, error) {
	if err := knows("sp_releaseapplock", args, "@Resource", "@LockOwner", "@DbPrincipal"); err != nil {
		return 0, err
	}
	resource := textOf(args, "@Resource", 0)
	var err error
	if strings.EqualFold(textOf(args, "@LockOwner", 1), "session") {
		err = x.s.store.AppUnlock(resource)
	} else if x.s.tran != nil {
		err = x.s.tran.tx.AppUnlock(resource)
	} else {
		err = storage.ErrNotLocked
	}
	if errors.Is(err, storage.ErrNotLocked) {
		return appLockInvalid, raise(1223, 16, 1, "Cannot release the application lock (Database Principal: 'public', Resource: '%s') because it is not currently held.", resource)
	}
	return 0, err
}
