package engine

import (
	"errors"
	"slices"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// target is the table that INSERT, UPDATE or DELETE changes: a stored table or
// a table variable.
type target struct {
	def *tableDef
	src *source
	// variable is the table variable's ordinal, -1 for a stored table.
	variable int
	checks   []checkRow
	// keysFit refuse a row whose key in some index is too long.
	keysFit []func(row []sqltype.Value) error
	// usage are the counters of the indexes that the statement keeps up.
	usage []*useCount
}

// checkRow is a CHECK constraint over a row in the target's own slot.
type checkRow struct {
	def  *checkDef
	test *predicate
}

// newTarget compiles what every write to the table must pass. src is the slot
// that holds a new row while it is checked.
func (c *compiler) newTarget(def *tableDef, variable int, src *source) (*target, error) {
	t := &target{def: def, variable: variable, src: src}
	for _, ck := range def.checks {
		if ck.disabled {
			continue
		}
		p, err := c.checkCondition(ck, src)
		if err != nil {
			return nil, err
		}
		t.checks = append(t.checks, checkRow{ck, p})
	}
	var err error
	t.keysFit, err = c.engine.keysFit(def)
	return t, err
}

func (c *compiler) checkCondition(ck *checkDef, src *source) (*predicate, error) {
	outer := c.checking
	c.checking = true
	defer func() { c.checking = outer }()
	level := c.level
	c.level = nil
	defer func() { c.level = level }()
	return c.condition(ck.expr, &scope{sources: []*source{src}})
}

// writable refuses a write to a read-only database, and to a table with
// filtered indexes from a session whose options could not maintain them.
func (t *target) writable(x *exec, statement string) error {
	if t.variable >= 0 {
		return nil
	}
	if !t.def.temp && x.s.engine.database.readOnly.Load() {
		return raise(3906, 16, 1, "Failed to update database \"%s\" because the database is read-only.", x.s.engine.config.Database)
	}
	if !t.def.filtered() {
		return nil
	}
	if wrong := x.s.set.wrongForFilteredIndex(); wrong != "" {
		return raise(1934, 16, 1, "%s failed because the following SET options have incorrect settings: '%s'. Verify that SET options are correct for use with indexed views and/or indexes on computed columns and/or filtered indexes and/or query notifications and/or XML data type methods and/or spatial index operations.", statement, wrong)
	}
	return nil
}

// errStalePlan: the table was altered between planning and locking it.
var errStalePlan = errors.New("the plan is older than the table")

// claim locks the target's structure and makes sure that it is still the one
// that the plan was made for.
func (t *target) claim(e *env, mode storage.LockMode) error {
	if t.variable >= 0 {
		return nil
	}
	if err := e.tx.LockTable(e.x.ctx, t.def.store, mode); err != nil {
		return err
	}
	if t.def.temp {
		return nil
	}
	if now, _ := e.x.s.engine.catalog.find(nameOf(t.def.schema, t.def.name)).(*tableDef); now != t.def {
		return errStalePlan
	}
	return nil
}

// store brings a value to a column's type, with the column's name in the error
// when it does not fit.
func (t *target) store(col int, v sqltype.Value) (sqltype.Value, error) {
	c := t.def.columns[col]
	out, err := sqltype.Assign(v, c.typ)
	if err == nil {
		return out, nil
	}
	var cut *sqltype.Truncation
	if errors.As(err, &cut) {
		return out, raiseTerminated(2628, 16, 1, "String or binary data would be truncated in table '%s', column '%s'. Truncated value: '%s'.", t.longName(), c.name, truncatedText(cut.Kept))
	}
	return out, err
}

// truncatedText: the message shows at most 100 characters.
func truncatedText(s string) string { return sqltype.CutUTF16(s, 100) }

func (t *target) longName() string {
	if t.variable >= 0 {
		return t.def.name
	}
	return t.def.fullName
}

// check tests NOT NULL and CHECK for a row about to be written.
func (t *target) check(e *env, row []sqltype.Value, statement string) error {
	for i, c := range t.def.columns {
		if !c.nullable && row[i].IsNull() {
			return errNull(c.name, t.longName(), statement)
		}
	}
	for _, fits := range t.keysFit {
		if err := fits(row); err != nil {
			return err
		}
	}
	if len(t.checks) == 0 {
		return nil
	}
	e.rows[t.src.slot] = row
	for _, ck := range t.checks {
		ok, err := ck.test.eval(e)
		if err != nil {
			return err
		}
		if ok == isFalse { // unknown passes
			column := ""
			if ck.def.column > 0 {
				column = ", column '" + t.def.columnByID(ck.def.column) + "'"
			}
			db, table, _ := strings.Cut(t.def.fullName, ".")
			return raiseTerminated(547, 16, 0, "The %s statement conflicted with the CHECK constraint \"%s\". The conflict occurred in database \"%s\", table \"%s\"%s.", statement, ck.def.name, db, table, column)
		}
	}
	return nil
}

func (t *tableDef) columnByID(id int) string {
	for _, c := range t.columns {
		if c.id == id {
			return c.name
		}
	}
	return ""
}

func (t *target) insert(e *env, row []sqltype.Value) error {
	if t.variable >= 0 {
		return e.x.tables[t.variable].insert(row)
	}
	return t.duplicate(e.tx.Insert(e.x.ctx, t.def.store, row))
}

func (t *target) update(e *env, old storage.Row, row []sqltype.Value) error {
	if t.variable >= 0 {
		return e.x.tables[t.variable].update(old.ID, row)
	}
	return t.duplicate(e.tx.Update(e.x.ctx, t.def.store, old, row))
}

func (t *target) remove(e *env, old storage.Row) error {
	if t.variable >= 0 {
		e.x.tables[t.variable].remove(old.ID)
		return nil
	}
	return e.tx.Delete(e.x.ctx, t.def.store, old)
}

// rekeys says whether a change moves a row to another unique key.
func (t *target) rekeys(e *env, old, row []sqltype.Value) bool {
	if t.variable >= 0 {
		return e.x.tables[t.variable].rekeys(old, row)
	}
	return t.def.store.Rekeys(old, row)
}

// whole runs a statement's changes, all or none. A table variable has no
// transaction that would roll them back.
func (t *target) whole(e *env, changes func() error) error {
	if t.variable < 0 {
		return changes()
	}
	table := e.x.tables[t.variable]
	before := slices.Clone(table.rows)
	err := changes()
	if err != nil {
		table.restore(before)
	}
	return err
}

// duplicate names the index of a duplicate key.
func (t *target) duplicate(err error) error {
	if err == nil {
		return nil
	}
	var dup *storage.DuplicateKeyError
	if !errors.As(err, &dup) {
		return err
	}
	name := dup.Index.Spec().Name
	for _, ix := range t.def.indexes {
		if ix.name == name {
			return errDuplicate(t.def, ix, dup.Key)
		}
	}
	return err
}

// errDuplicate is 2627 for a constraint and 2601 for a unique index.
func errDuplicate(def *tableDef, ix *indexDef, key []sqltype.Value) error {
	shown := keyText(key)
	object := def.qualified()
	if def.schema == "" {
		object = def.name
	}
	switch ix.constraint {
	case "PK":
		return raiseTerminated(2627, 14, 1, "Violation of PRIMARY KEY constraint '%s'. Cannot insert duplicate key in object '%s'. The duplicate key value is (%s).", ix.name, object, shown)
	case "UQ":
		return raiseTerminated(2627, 14, 1, "Violation of UNIQUE KEY constraint '%s'. Cannot insert duplicate key in object '%s'. The duplicate key value is (%s).", ix.name, object, shown)
	}
	return raiseTerminated(2601, 14, 1, "Cannot insert duplicate key row in object '%s' with unique index '%s'. The duplicate key value is (%s).", object, ix.name, shown)
}

// keyText is a key as the messages of duplicates show it.
func keyText(key []sqltype.Value) string {
	texts := make([]string, len(key))
	for i, v := range key {
		texts[i] = sqltype.Format(v)
		if v.IsNull() {
			texts[i] = "<NULL>"
		}
	}
	return strings.Join(texts, ", ")
}
