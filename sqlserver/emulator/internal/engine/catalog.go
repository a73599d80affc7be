package engine

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// catalog is the names of the database. Definitions are never changed once
// they are in it: DDL puts a new one in place and raises version, after which
// plans are made anew.
type catalog struct {
	mu      sync.RWMutex
	version atomic.Int64
	schemas map[string]*schema
	objects map[objectName]object
	// security is put in place like a definition.
	security securityPointer
	nextID   int32
}

// objectName is a schema and a name, both in lower case: the database's
// collation ignores case.
type objectName struct{ schema, name string }

func nameOf(schema, name string) objectName {
	return objectName{strings.ToLower(schema), strings.ToLower(name)}
}

type schema struct {
	id    int32
	name  string
	owner int32 // a principal
}

// object is a table, sequence, procedure, trigger or table type.
type object interface {
	header() *objectHeader
}

// objectHeader is what sys.objects shows of every object.
type objectHeader struct {
	id       int32
	schema   string
	name     string
	created  time.Time
	modified time.Time
}

func (h *objectHeader) header() *objectHeader { return h }

func (h *objectHeader) qualified() string { return h.schema + "." + h.name }

// tableDef is a table's definition.
type tableDef struct {
	objectHeader
	columns []*columnDef
	// indexes has the clustered one first where there is one.
	indexes  []*indexDef
	checks   []*checkDef
	triggers []*trigger
	// statistics are those of CREATE STATISTICS.
	statistics []*statisticsDef
	identity   *identity
	store      *storage.Table
	temp       bool
	// fullName is database.schema.table, as messages show it.
	fullName string
	// nextColumnID and nextIndexID are never reused.
	nextColumnID int
	nextIndexID  int
}

type columnDef struct {
	id       int
	name     string
	typ      sqltype.Type
	nullable bool
	identity bool
	rowGUID  bool
	def      *defaultDef
	// collationNamed: the definition named a collation.
	collationNamed bool
}

type defaultDef struct {
	objectHeader
	expr ast.ScalarExpression
	text string
	// systemNamed: nobody gave it a name.
	systemNamed bool
}

type checkDef struct {
	objectHeader
	expr        ast.BooleanExpression
	text        string
	column      int // 0 for a table constraint
	systemNamed bool
	disabled    bool
	notTrusted  bool
}

type indexDef struct {
	id        int
	name      string
	unique    bool
	clustered bool
	disabled  bool
	// constraint is "PK" or "UQ" with its object, or "" for a plain index.
	constraint string
	object     objectHeader
	key        []indexColumn
	include    []int
	filter     ast.BooleanExpression
	filterText string
	// conjuncts are the filter's parts, for finding out whether a query implies
	// it.
	conjuncts  []filterPart
	fillFactor int
	sequential bool // OPTIMIZE_FOR_SEQUENTIAL_KEY
	padIndex   bool
	// noPageLocks is ALLOW_PAGE_LOCKS = OFF, kept for sys.indexes: there are no
	// page locks either way.
	noPageLocks bool
	ignoreDup   bool
	store       *storage.Index
}

type indexColumn struct {
	column int // ordinal in tableDef.columns
	desc   bool
}

// identity is an IDENTITY column's counter. It does not roll back.
type identity struct {
	mu              sync.Mutex
	column          int
	seed, increment int64
	next            int64
	used            bool
}

func (i *identity) take() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.next
	i.next += i.increment
	i.used = true
	return n
}

// tableTypeDef is CREATE TYPE … AS TABLE.
type tableTypeDef struct {
	objectHeader
	table *tableDef
}

func newCatalog() *catalog {
	c := &catalog{
		schemas: make(map[string]*schema),
		objects: make(map[objectName]object),
		nextID:  245575913, // user objects begin far above the system's
	}
	for id, name := range map[int32]string{1: "dbo", 2: "guest", 3: "INFORMATION_SCHEMA", 4: "sys"} {
		c.schemas[strings.ToLower(name)] = &schema{id, name, id} // dbo is owned by dbo, and so on
	}
	c.security.Store(newSecurity())
	c.version.Store(1)
	return c
}

// newID gives out an object id. The step is SQL Server's 16000057.
func (c *catalog) newID() int32 {
	c.nextID += 16000057
	if c.nextID < 0 {
		c.nextID = c.nextID&0x7fffffff + 1
	}
	return c.nextID
}

func (c *catalog) newHeader(schema, name string) objectHeader {
	now := time.Now().UTC()
	return objectHeader{id: c.newID(), schema: schema, name: name, created: now, modified: now}
}

// find looks an object up; the caller need not hold the lock.
func (c *catalog) find(n objectName) object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.objects[n]
}

func (c *catalog) schema(name string) *schema {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.schemas[strings.ToLower(name)]
}

// change edits the catalog. edit returns what puts it back.
func (c *catalog) change(undo *undoLog, edit func() (revert func(), err error)) error {
	c.mu.Lock()
	revert, err := edit()
	c.version.Add(1)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	*undo = append(*undo, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		revert()
		c.version.Add(1)
	})
	return nil
}

// put adds or replaces an object, within change.
func (c *catalog) put(o object) (revert func()) {
	n := nameOf(o.header().schema, o.header().name)
	old, had := c.objects[n]
	c.objects[n] = o
	return func() {
		if had {
			c.objects[n] = old
			return
		}
		delete(c.objects, n)
	}
}

// remove takes an object away, within change.
func (c *catalog) remove(n objectName) (revert func()) {
	old := c.objects[n]
	delete(c.objects, n)
	return func() { c.objects[n] = old }
}

// column is a column's ordinal by its name, or -1.
func (t *tableDef) column(name string) int {
	for i, c := range t.columns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// index finds an index by its name.
func (t *tableDef) index(name string) *indexDef {
	for _, ix := range t.indexes {
		if strings.EqualFold(ix.name, name) {
			return ix
		}
	}
	return nil
}

func (t *tableDef) clustered() *indexDef {
	if len(t.indexes) > 0 && t.indexes[0].clustered {
		return t.indexes[0]
	}
	return nil
}

// filtered says whether any index has a filter: then every writer's settings
// must be right (error 1934).
func (t *tableDef) filtered() bool {
	for _, ix := range t.indexes {
		if ix.filter != nil && !ix.disabled {
			return true
		}
	}
	return false
}

// copy is a definition to edit; the parts are shared.
func (t *tableDef) copy() *tableDef {
	n := *t
	n.columns = append([]*columnDef(nil), t.columns...)
	n.indexes = append([]*indexDef(nil), t.indexes...)
	n.checks = append([]*checkDef(nil), t.checks...)
	n.modified = time.Now().UTC()
	return &n
}
