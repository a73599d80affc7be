package storage

import (
	"context"
	"strings"
	"time"
)

// appResource is a name that sessions lock by agreement (sp_getapplock).
type appResource struct {
	name string
	lock resource
	// refs counts holders and requests under way; without any the name is
	// forgotten.
	refs int
}

func (a *appResource) lockable() *resource { return &a.lock }

func (a *appResource) describe(info *LockInfo) {
	info.Resource, info.App = ApplicationLock, a.name
	if a.isName() { // nothing is known of the object but its name
		info.Resource, info.App = ObjectLock, ""
	}
}

func (a *appResource) isName() bool { return strings.HasPrefix(a.name, namePrefix) }

func (m *lockManager) countName(a *appResource, by int64) {
	if a.isName() {
		m.names.Add(by)
	}
}

// AppLock takes an application lock (sp_getapplock) that lives until
// AppUnlock or Close. Taken twice, it must be released twice. waited says
// whether it had to queue. Errors are those of Cursor.Next.
func (s *Session) AppLock(ctx context.Context, resource string, mode LockMode, timeout time.Duration) (waited bool, err error) {
	return s.db.locks.lockApp(ctx, &s.locks, resource, mode, timeout)
}

// AppUnlock gives one AppLock back; ErrNotLocked when the session holds none.
func (s *Session) AppUnlock(resource string) error {
	return s.db.locks.unlockApp(&s.locks, resource)
}

// AppLock takes an application lock that the end of the transaction releases.
func (tx *Txn) AppLock(ctx context.Context, resource string, mode LockMode, timeout time.Duration) (waited bool, err error) {
	if tx.done {
		return false, ErrTxnDone
	}
	return tx.db.locks.lockApp(ctx, &tx.locks, resource, mode, timeout)
}

// AppUnlock gives one AppLock of the transaction back; ErrNotLocked when it
// holds none.
func (tx *Txn) AppUnlock(resource string) error {
	return tx.db.locks.unlockApp(&tx.locks, resource)
}

func (m *lockManager) lockApp(ctx context.Context, o *lockOwner, name string, mode LockMode, timeout time.Duration) (bool, error) {
	m.mu.Lock()
	app := m.apps[name]
	if app == nil {
		app = &appResource{name: name}
		m.apps[name] = app
		m.countName(app, 1)
	}
	app.refs++
	m.mu.Unlock()

	g, err := m.acquire(ctx, o, app, mode, timeout)

	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.unref(app)
		return false, err
	}
	if !g.fresh {
		m.unref(app)
	}
	g.held.taken++
	return g.waited, nil
}

func (m *lockManager) unlockApp(o *lockOwner, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if app := m.apps[name]; app != nil {
		for h := app.lock.holders; h != nil; h = h.nextHolder {
			if h.owner == o {
				if h.taken--; h.taken == 0 {
					m.drop(h)
				}
				return nil
			}
		}
	}
	return ErrNotLocked
}

func (m *lockManager) unref(app *appResource) {
	if app.refs--; app.refs == 0 {
		delete(m.apps, app.name)
		m.countName(app, -1)
	}
}
