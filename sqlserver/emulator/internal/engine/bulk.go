package engine

import (
	"context"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// bulkLoad is an INSERT BULK whose rows are on their way.
type bulkLoad struct {
	plan *unit[*insertPlan]
	cols []tds.Column
	lock storage.LockMode
	// checks is CHECK_CONSTRAINTS: without it CHECKs are passed over. keepNulls
	// is KEEP_NULLS: without it a NULL becomes the column's default.
	checks, keepNulls bool
	// fires is FIRE_TRIGGERS: without it no trigger runs.
	fires bool
}

// insertBulk is INSERT BULK t (column type, …): the client sends the rows
// next.
func (b *builder) insertBulk(st *ast.InsertBulkStatement) (node, error) {
	var cols []tds.Column
	var refs []*ast.ColumnReferenceExpression
	for _, d := range st.ColumnDefinitions {
		t, err := b.engine.dataType(d.Column.DataType)
		if err != nil {
			return nil, err
		}
		cols = append(cols, tds.Column{Name: d.Column.ColumnIdentifier.Value, Type: t, Nullable: d.NullNotNull != "NotNull"})
		refs = append(refs, columnNamed(d.Column.ColumnIdentifier))
	}
	load := &bulkLoad{cols: cols, lock: storage.IX}
	for _, o := range st.Options {
		kind := syntaxName(o)
		if base, ok := o.(*ast.BulkInsertOptionBase); ok {
			kind = base.OptionKind
		}
		switch kind {
		case "TabLock":
			load.lock = storage.X
		case "CheckConstraints":
			load.checks = true
		case "KeepNulls":
			load.keepNulls = true
		case "FireTriggers":
			load.fires = true
		}
	}
	load.plan = newUnit(b, lineOf(st), func(c *compiler) (*insertPlan, error) {
		spec := &ast.InsertSpecification{
			Target:       &ast.NamedTableReference{SchemaObject: st.To},
			Columns:      refs,
			InsertSource: &ast.ValuesInsertSource{},
		}
		p, err := c.insert(spec)
		if err == nil {
			p.forNull, err = c.defaults(p.target.def, nil)
		}
		return p, err
	})
	return action(func(x *exec) error {
		if _, _, err := load.plan.get(x); err != nil {
			return err
		}
		x.s.loads = load
		return x.w.ExpectBulk(cols)
	}), nil
}

// Bulk inserts the rows of an INSERT BULK, all or none.
func (s *session) Bulk(ctx context.Context, columns []tds.Column, next func() ([]sqltype.Value, bool, error), w tds.ResultWriter) error {
	return s.request(ctx, w, func(x *exec) error {
		load := s.loads
		s.loads = nil
		if load == nil {
			return raise(4002, 16, 1, "The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly.")
		}
		p, e, err := load.plan.get(x)
		if err != nil {
			return err
		}
		if err := p.target.writable(x, "INSERT"); err != nil {
			return err
		}
		plan := *p
		if !load.checks {
			t := *p.target
			t.checks = nil
			plan.target = &t
		}
		fired := onInsert
		if !load.fires {
			fired = 0
		}
		res := &results{}
		count, err := x.change(p.target, fired, nil, res, func(sc *statementScope) (count int64, err error) {
			e.tx = sc.tx
			if err := p.target.claim(e, load.lock); err != nil {
				return 0, err
			}
			p.target.count()
			for {
				row, ok, err := next()
				if err != nil || !ok {
					return count, err
				}
				if !load.keepNulls {
					if row, err = plan.fillNulls(e, row); err != nil {
						return 0, err
					}
				}
				if err := plan.insertRow(e, row, res); err != nil {
					return 0, err
				}
				count++
			}
		})
		if err != nil {
			return err
		}
		return x.done(count)
	})
}

// fillNulls puts defaults where the client sent NULL.
func (p *insertPlan) fillNulls(e *env, row []sqltype.Value) ([]sqltype.Value, error) {
	for i, col := range p.columns {
		if i < len(row) && row[i].IsNull() && p.forNull[col] != nil {
			v, err := p.forNull[col].eval(e)
			if err != nil {
				return nil, err
			}
			row[i] = v
		}
	}
	return row, nil
}
