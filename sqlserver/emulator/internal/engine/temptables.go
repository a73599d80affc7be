package engine

import "strings"

// tempTables are a session's #tables.
type tempTables struct{ tables map[string]*tableDef }

func newTempTables() *tempTables { return &tempTables{tables: make(map[string]*tableDef)} }

func (t *tempTables) find(name string) *tableDef { return t.tables[strings.ToLower(name)] }

func (t *tempTables) put(def *tableDef) { t.tables[strings.ToLower(def.name)] = def }

func (t *tempTables) remove(name string) { delete(t.tables, strings.ToLower(name)) }

// drop forgets them all; their rows go with the last pointer.
func (t *tempTables) drop() { clear(t.tables) }
