package doctor

import (
	"context"
	"database/sql"
	"errors"

	"azsqloutbox/scripts"
)

// The definition is NULL for whoever has no VIEW DEFINITION on the procedure, and
// where it is encrypted (sql-docs, sys-sql-modules-transact-sql.md).
const doctorEnqueueSQL = `SELECT /* outbox:DoctorEnqueue */ m.definition
FROM   sys.sql_modules AS m
WHERE  m.object_id = OBJECT_ID(@procedure, N'P');`

// enqueue looks at the procedure for writers: what an earlier 010_enqueue.sql has
// made does not read back what a column that was migrated since may have changed.
func (v *visit) enqueue(ctx context.Context, all bool) ([]Finding, error) {
	const check = "procedure for writers"
	var definition sql.NullString
	err := v.conn.QueryRowContext(ctx, doctorEnqueueSQL, sql.Named("procedure", v.Procedure())).Scan(&definition)
	switch {
	case errors.Is(err, sql.ErrNoRows) && all:
		return one(check, OK, v.Procedure()+" is not there; it is for writers that are not a sqlserver.Writer", ""), nil
	case errors.Is(err, sql.ErrNoRows):
		return one(check, Unknown, "whether there is "+v.Procedure()+" is not shown without VIEW DEFINITION on it",
			"run doctor once as someone who has it, a db_owner for one; a worker needs no such right"), nil
	case err != nil:
		return nil, err
	case !definition.Valid:
		return one(check, Unknown, "the text of "+v.Procedure()+" is not shown without VIEW DEFINITION on it, or is encrypted",
			"run doctor once as someone who has it, a db_owner for one; a worker needs no such right"), nil
	}
	current, err := scripts.IsEnqueue(scripts.Options{Schema: v.Schema, Table: v.Table}, definition.String)
	switch {
	case err != nil:
		return nil, err
	case !current:
		return one(check, Warn, v.Procedure()+" was made by another version of 010_enqueue.sql, or was changed since: an earlier one lets a column that was migrated since replace characters in silence",
			"run 010_enqueue.sql of this version again; outboxctl schema print --enqueue prints it for a table of another name or with other types"), nil
	}
	return one(check, OK, v.Procedure()+" is that of 010_enqueue.sql", ""), nil
}
