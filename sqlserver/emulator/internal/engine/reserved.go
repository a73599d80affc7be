package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// reserved are the keywords that name nothing without brackets (sql-docs,
// reserved-keywords-transact-sql.md). The parser takes them for a name where it
// expects one.
var reserved = wordSet(`ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY
CASCADE CASE CHECK CHECKPOINT CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS
CONTAINSTABLE CONTINUE CONVERT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER
CURSOR DATABASE DBCC DEALLOCATE DECLARE DEFAULT DELETE DENY DESC DISK DISTINCT DISTRIBUTED DOUBLE DROP DUMP
ELSE END ERRLVL ESCAPE EXCEPT EXEC EXECUTE EXISTS EXIT EXTERNAL FETCH FILE FILLFACTOR FOR FOREIGN FREETEXT
FREETEXTTABLE FROM FULL FUNCTION GOTO GRANT GROUP HAVING HOLDLOCK IDENTITY IDENTITY_INSERT IDENTITYCOL IF IN
INDEX INNER INSERT INTERSECT INTO IS JOIN KEY KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK NONCLUSTERED
NOT NULL NULLIF OF OFF OFFSETS ON OPEN OPENDATASOURCE OPENQUERY OPENROWSET OPENXML OPTION OR ORDER OUTER OVER
PERCENT PIVOT PLAN PRECISION PRIMARY PRINT PROC PROCEDURE PUBLIC RAISERROR READ READTEXT RECONFIGURE REFERENCES
REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT ROWGUIDCOL RULE SAVE SCHEMA
SECURITYAUDIT SELECT SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE TEXTSIZE
THEN TO TOP TRAN TRANSACTION TRIGGER TRUNCATE TRY_CONVERT TSEQUAL UNION UNIQUE UNPIVOT UPDATE UPDATETEXT USE
USER VALUES VARYING VIEW WAITFOR WHEN WHERE WHILE WITH WRITETEXT`)

// clauses begin what stands behind a list or an alias, and are neither themselves.
var clauses = wordSet("FROM WHERE ORDER GROUP HAVING OPTION UNION EXCEPT INTERSECT ON")

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

func errKeyword(word string) *sqlError {
	return raiseBatch(156, 15, 1, "Incorrect syntax near the keyword '%s'.", strings.ToUpper(word))
}

// errNear is a token that the statement cannot have there.
func errNear(token string) *sqlError {
	if reserved[strings.ToUpper(token)] {
		return errKeyword(token)
	}
	return errSyntax(token)
}

// unnamed refuses an alias that is a keyword.
func unnamed(id *ast.Identifier) error {
	if id != nil && id.QuoteType == "NotQuoted" && reserved[strings.ToUpper(id.Value)] {
		return errKeyword(id.Value)
	}
	return nil
}

// aliasOf is the alias of a table reference, and whether it must have one.
func aliasOf(ref ast.TableReference) (id *ast.Identifier, needed bool) {
	switch ref := ref.(type) {
	case *ast.NamedTableReference:
		return ref.Alias, false
	case *ast.VariableTableReference:
		return ref.Alias, false
	case *ast.OpenJsonTableReference:
		return ref.Alias, false
	case *ast.GlobalFunctionTableReference:
		return ref.Alias, false
	case *ast.SchemaObjectFunctionTableReference:
		return ref.Alias, false
	case *ast.QueryDerivedTable:
		return ref.Alias, true
	case *ast.InlineDerivedTable:
		return ref.Alias, true
	}
	return nil, false
}
