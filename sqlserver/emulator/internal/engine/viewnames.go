package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// editionSet are editions where a system view exists.
type editionSet uint8

const (
	onDatabase editionSet = 1 << iota // Azure SQL Database
	onInstance                        // Azure SQL Managed Instance
	onBoxed                           // SQL Server

	everywhere = onDatabase | onInstance | onBoxed
)

func (e Edition) set() editionSet {
	switch e {
	case AzureSQLDatabase:
		return onDatabase
	case AzureManagedInstance:
		return onInstance
	}
	return onBoxed
}

// exists says whether the edition has a view, or a function that gives rows, of
// this name: schema.name in lower case.
func (e *Engine) exists(key string) bool {
	where, listed := viewEditions[key]
	if !listed {
		_, isView := views[key]
		_, isFunction := rowFunctions[strings.ToUpper(key)]
		if !isView && !isFunction {
			return false
		}
		where = everywhere
	}
	return where&e.config.Edition.set() != 0
}

// viewKey is a name's place in views.
func viewKey(name *ast.SchemaObjectName) string {
	if name.SchemaIdentifier == nil {
		return ""
	}
	return strings.ToLower(name.SchemaIdentifier.Value + "." + name.BaseIdentifier.Value)
}

// systemView finds a system view by its name: sys.x or db.sys.x. nil without an
// error is no such view.
func (e *Engine) systemView(name *ast.SchemaObjectName) (*viewSource, error) {
	key := viewKey(name)
	if !e.exists(key) {
		return nil, nil
	}
	if err := e.elsewhere(name, key); err != nil {
		return nil, err
	}
	if _, isFunction := rowFunctions[strings.ToUpper(key)]; isFunction {
		return nil, raiseBatch(216, 16, 1, "Parameters were not supplied for the function '%s'.", key)
	}
	if f := e.fake(key); f != nil {
		return &viewSource{f.cols, func(s *session) ([][]sqltype.Value, error) { return f.answer(s, nil, nil) }}, nil
	}
	v, ok := views[key]
	if !ok || v.rows == nil {
		return nil, notModelled("%s", key)
	}
	return &viewSource{v.cols, func(s *session) ([][]sqltype.Value, error) { return s.visibleRows(key, v) }}, nil
}

// elsewhere refuses a view of another database: Azure SQL Database has no way to it
// but for tempdb, and here there are none. What is of the whole server is the same
// from master.
func (e *Engine) elsewhere(name *ast.SchemaObjectName, key string) error {
	db := name.DatabaseIdentifier
	switch {
	case db == nil, db.Value == "", strings.EqualFold(db.Value, e.config.Database):
		return nil
	case e.config.Edition == AzureSQLDatabase:
		return e.reach(partsOf(name))
	case strings.EqualFold(db.Value, "master") && ofServer(key):
		return nil
	}
	return notModelled("%s of another database", key)
}

func ofServer(key string) bool {
	for _, prefix := range []string{"sys.databases", "sys.server_", "sys.dm_os_", "sys.dm_exec_", "sys.dm_tran_"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// viewSource is a view to read.
type viewSource struct {
	cols []outCol
	rows func(s *session) ([][]sqltype.Value, error)
}
