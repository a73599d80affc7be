package engine

import (
	"github.com/sqlc-dev/teesql/ast"
)

type view struct{}

func (e *Engine) view(*ast.SchemaObjectName) (*view, bool) { return nil, false }
func (e *Engine) isView(n *ast.SchemaObjectName) bool      { return false }
func (c *compiler) catalogView(v *view, as string, sc *scope) (*joinTree, error) {
	return nil, nil
}
func (b *builder) moreDefinitions(st ast.Statement) (node, bool, error) { return nil, false, nil }
func (b *builder) selectInto(st *ast.SelectStatement) (node, error) {
	return nil, notModelled("SELECT INTO")
}
