package engine

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// resumables are the resumable rebuilds that are paused. Nothing here takes
// long enough to be stopped half-way, so a test says which one stops, and where.
// They outlive a restart.
type resumables struct {
	mu     sync.Mutex
	stops  map[string]float64
	paused map[usageKey]*resumable
}

// resumable is a paused rebuild. What it was asked for is done when it is
// resumed.
type resumable struct {
	table, index string
	key          usageKey
	text         string
	options      []ast.IndexOption
	maxDOP       int64
	percent      float64
	began, ended time.Time
}

// StopRebuild has the next resumable rebuild of an index, or its next RESUME,
// stop at a percentage, as at the end of its MAX_DURATION. table is schema.name.
func (e *Engine) StopRebuild(table, index string, percent float64) {
	r := &e.resumables
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stops == nil {
		r.stops = make(map[string]float64)
	}
	r.stops[strings.ToLower(table+"."+index)] = percent
}

// stop takes what StopRebuild has said.
func (r *resumables) stop(def *tableDef, ix *indexDef) (percent float64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.ToLower(def.qualified() + "." + ix.name)
	percent, ok = r.stops[name]
	delete(r.stops, name)
	return percent, ok
}

func (r *resumables) put(op *resumable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused == nil {
		r.paused = make(map[usageKey]*resumable)
	}
	r.paused[op.key] = op
}

func (r *resumables) remove(k usageKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paused, k)
}

func (r *resumables) find(k usageKey) *resumable {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused[k]
}

// list is what is paused, by table and index.
func (r *resumables) list() []*resumable {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*resumable
	for _, op := range r.paused {
		all = append(all, op)
	}
	slices.SortFunc(all, func(a, b *resumable) int {
		return cmp.Or(cmp.Compare(a.key.table, b.key.table), cmp.Compare(a.key.index, b.key.index))
	})
	return all
}

// notPaused refuses DDL on a table whose rebuild is paused.
func (r *resumables) notPaused(def *tableDef) error {
	for _, op := range r.list() {
		if op.key.table == def.id {
			return raise(10637, 16, 1, "Cannot perform this operation on 'object' with ID %d as one or more indexes are currently in resumable index rebuild state. Please refer to sys.index_resumable_operations for more details.", def.id)
		}
	}
	return nil
}

func errNoOperation(verb, index, table string) error {
	return raise(10638, 16, 2, "ALTER INDEX '%s' failed. There is no pending resumable index operation for the index '%s' on '%s'.", verb, index, table)
}

// errStopped is how a rebuild ends at its MAX_DURATION.
func errStopped() error {
	e := raise(3643, 16, 1, "The operation elapsed time exceeded the maximum time specified for this operation. The execution has been stopped.")
	e.effect = endsBatch
	return e
}

// pause keeps a rebuild that a test has asked to stop; nil lets it be done.
func (x *exec) pause(def *tableDef, ix *indexDef, options []ast.IndexOption, maxDOP int64, st *ast.AlterIndexStatement, before *resumable) error {
	e := x.s.engine
	percent, stops := e.resumables.stop(def, ix)
	if !stops {
		return nil
	}
	now := time.Now().UTC()
	op := &resumable{
		table: def.name, index: ix.name, key: usageKey{def.id, ix.id}, text: x.sourceOf(st), options: options,
		maxDOP: maxDOP, percent: percent, began: now, ended: now,
	}
	if before != nil {
		op.began, op.text = before.began, before.text
	}
	e.resumables.put(op)
	return errStopped()
}

// sourceOf is the text of a statement of the running module.
func (x *exec) sourceOf(st *ast.AlterIndexStatement) string {
	units := utf16.Encode([]rune(x.mod.text))
	if end := st.StartOffset + st.FragmentLength; st.StartOffset >= 0 && end <= len(units) {
		return strings.TrimRight(string(utf16.Decode(units[st.StartOffset:end])), "; \r\n\t")
	}
	return x.mod.text
}

// resumes: running the statement again that began a paused rebuild goes on with
// it.
func (x *exec) resumes(st *ast.AlterIndexStatement) bool {
	if st.AlterIndexType != "Rebuild" || st.All {
		return false
	}
	def, err := x.tableForDDL(st.OnName, "ALTER INDEX")
	if err != nil {
		return false
	}
	ix := def.index(st.Name.Value)
	if ix == nil {
		return false
	}
	op := x.s.engine.resumables.find(usageKey{def.id, ix.id})
	return op != nil && op.text == x.sourceOf(st)
}

// alterPaused is ALTER INDEX RESUME, PAUSE and ABORT.
func (x *exec) alterPaused(sc *statementScope, st *ast.AlterIndexStatement) error {
	e := x.s.engine
	verb := strings.ToUpper(st.AlterIndexType)
	def, err := x.tableForDDL(st.OnName, "ALTER INDEX")
	if err != nil {
		return err
	}
	if st.All || st.Name == nil {
		return errSyntax("ALL")
	}
	ix := def.index(st.Name.Value)
	if ix == nil {
		return raise(2727, 11, 1, "Cannot find index '%s'.", st.Name.Value)
	}
	k := usageKey{def.id, ix.id}
	op := e.resumables.find(k)
	if op == nil || verb == "PAUSE" { // none ever runs long enough to be paused
		return errNoOperation(verb, ix.name, def.name)
	}
	if x.s.tran != nil {
		return raise(574, 16, 0, "ALTER INDEX %s statement cannot be used inside a user transaction.", verb)
	}
	if verb == "ABORT" {
		e.resumables.remove(k)
		return nil
	}
	more, err := readRebuild(st.IndexOptions, "ALTER INDEX RESUME")
	if err != nil {
		return err
	}
	if more.maxDOP == 0 {
		more.maxDOP = op.maxDOP
	}
	if err := more.lock(x, sc, def); err != nil {
		return err
	}
	if def, err = x.tableForDDL(st.OnName, "ALTER INDEX"); err != nil {
		return err
	}
	if e.resumables.find(k) != op || def.index(ix.name) == nil { // another one was faster
		return errNoOperation(verb, ix.name, def.name)
	}
	if err := x.pause(def, ix, op.options, more.maxDOP, st, op); err != nil {
		return err
	}
	next := def.copy().withOwnIndexes()
	if err := x.rebuild(sc, next, next.index(ix.name), op.options); err != nil {
		return err
	}
	if err := x.replaceTable(sc, next); err != nil {
		return err
	}
	e.resumables.remove(k)
	return nil
}

var _ = registerViews(map[string]*view{
	"sys.index_resumable_operations": {resumableCols, func(s *session) [][]sqltype.Value {
		return eachRow(s.engine.resumables.list(), func(op *resumable) []sqltype.Value {
			percent := sqltype.FloatValue(sqltype.Real, op.percent)
			minutes := int(op.ended.Sub(op.began).Minutes())
			return catalogRow(resumableCols, op.key.table, op.key.index, op.index, op.text, op.maxDOP, nil, 1, "PAUSED", op.began, op.ended, minutes, percent, nil)
		})
	}},
})

// resumableCols are those of sql-docs, sys.index_resumable_operations; there are
// no pages to count.
var resumableCols = []outCol{
	vInt("object_id"), vInt("index_id"), vName("name"), vText("sql_text"), vSmall("last_max_dop"), vIntNull("partition_number"), vTiny("state"),
	{name: "state_desc", typ: nvarcharType(60)},
	vTime("start_time"), vTimeNull("last_pause_time"), vInt("total_execution_time"),
	{name: "percent_complete", typ: sqltype.Type{Kind: sqltype.Real}},
	vBigNull("page_count"),
}
