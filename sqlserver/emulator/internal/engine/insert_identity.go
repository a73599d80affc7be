package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// identity fills the IDENTITY column, or lets an explicit value in where
// IDENTITY_INSERT is on.
func (p *insertPlan) identity(e *env, row []sqltype.Value) error {
	def, s := p.target.def, e.x.s
	id := def.identity
	on := strings.EqualFold(s.identityInsert, def.qualified())
	switch {
	case p.explicitIdentity && p.target.variable >= 0:
		return raise(1077, 15, 1, "INSERT into an identity column not allowed on table variables.")
	case p.explicitIdentity && !on:
		return raise(544, 16, 1, "Cannot insert explicit value for identity column in table '%s' when IDENTITY_INSERT is set to OFF.", def.name)
	case !p.explicitIdentity && on:
		return raise(545, 16, 1, "Explicit value must be specified for identity column in table '%s' either when IDENTITY_INSERT is set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column.", def.name)
	}
	n := row[id.column].N
	if p.explicitIdentity {
		id.raiseTo(n)
	} else {
		n = id.take()
	}
	v, err := sqltype.Convert(bigValue(n), def.columns[id.column].typ, 0)
	if err != nil {
		return raise(8115, 16, 1, "Arithmetic overflow error converting IDENTITY to data type %s.", def.columns[id.column].typ.Name())
	}
	row[id.column] = v
	s.scopeIdentity, err = sqltype.Convert(v, sqltype.Type{Kind: sqltype.Decimal, Precision: 38}, 0)
	s.globalIdentity = s.scopeIdentity
	return err
}

// raiseTo keeps the counter above an explicit value.
func (i *identity) raiseTo(n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if (i.increment > 0 && n >= i.next) || (i.increment < 0 && n <= i.next) {
		i.next, i.used = n+i.increment, true
	}
}
