package engine

import (
	"context"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/tds"
)

const securedTables = `CREATE SEQUENCE q AS BIGINT START WITH 1 MINVALUE 1;
CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, v VARCHAR(10) NULL, secret INT NULL, n BIGINT NOT NULL CONSTRAINT DF DEFAULT NEXT VALUE FOR q, CONSTRAINT CK CHECK (id > 0));
CREATE INDEX ixf ON t (v) WHERE id > 0; CREATE TABLE other (id INT NOT NULL); INSERT t (id, v, secret) VALUES (1, 'a', 42);
CREATE USER u WITHOUT LOGIN; CREATE ROLE r`

// as runs a text as a user, in the batch alone.
func as(user, sql string) string { return `EXECUTE AS USER = '` + user + `'; ` + sql + `; REVERT` }

func TestNothingIsGranted(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, securedTables)
	must(t, s, `CREATE PROCEDURE p AS SELECT 1`)
	for _, c := range []struct{ sql, want string }{
		{`SELECT id FROM t; SELECT 2`, "error 229\n2"},
		{`SELECT COUNT(*) FROM t`, "error 229"},
		{`INSERT t (id) VALUES (2)`, "error 229"},
		{`UPDATE t SET v = 'b'`, "error 229"},
		{`DELETE t`, "error 229"},
		{`EXEC p`, "error 229"},
		{`SELECT NEXT VALUE FOR q`, "error 229"},
		{`EXEC sp_sequence_get_range 'q', 5`, "error 229"},
		{`IF EXISTS (SELECT 1 FROM t) SELECT 1`, "error 229"},
		{`BEGIN TRY SELECT id FROM t END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH`, "229"},
		{`ALTER TABLE t ADD z INT NULL`, "error 4902"},
		{`CREATE INDEX i ON t (v)`, "error 1088"},
		{`ALTER INDEX ixf ON t REBUILD`, "error 1088"},
		{`DROP INDEX ixf ON t`, "error 3701"},
		{`TRUNCATE TABLE t`, "error 4701"},
		{`DROP TABLE t`, "error 3701"},
		{`DROP PROCEDURE p`, "error 3701"},
		{`CREATE TABLE mine (a INT)`, "error 262"},
		{`CREATE TYPE mine AS TABLE (a INT)`, "error 262"},
		{`CREATE SEQUENCE mine`, "error 2760"},
		{`EXEC ('CREATE SCHEMA mine')`, "error 262\nerror 2759"},
		{`EXEC ('CREATE PROCEDURE mine AS SELECT 1')`, "error 262"},
		{`EXEC ('ALTER PROCEDURE p AS SELECT 1')`, "error 3704"},
		{`EXEC ('CREATE TRIGGER tr ON t AFTER INSERT AS SELECT 1')`, "error 8197"},
		{`CREATE USER v WITHOUT LOGIN`, "error 15247"},
		{`CREATE ROLE v`, "error 15247"},
		{`ALTER ROLE r ADD MEMBER u`, "error 15151"},
		{`DROP USER u`, "error 15151"},
		{`GRANT SELECT ON t TO r`, "error 15151"},
		{`GRANT CREATE TABLE TO r`, "error 4613"},
		{`ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON`, "error 5011"},
		{`SELECT cntr FROM sys.dm_tran_locks`, "error 207"},
		{`SELECT COUNT(*) FROM sys.dm_tran_locks`, "error 262\nerror 297"},
		{`SELECT COUNT(*) FROM sys.dm_db_index_usage_stats`, "error 262\nerror 297"},
		{`SELECT session_id - @@SPID FROM sys.dm_exec_sessions`, "0"},
		{`EXECUTE AS USER = 'dbo'`, "error 15517"},
		// what it does not see
		{`SELECT COUNT(*) FROM sys.tables; SELECT COUNT(*) FROM sys.columns; SELECT OBJECT_ID('t'), OBJECT_NAME(OBJECT_ID('t'))`, "0\n0\nNULL|NULL"},
		{`SELECT COL_LENGTH('t', 'id'), COLUMNPROPERTY(OBJECT_ID('t'), 'id', 'AllowsNull'), OBJECT_DEFINITION(OBJECT_ID('p'))`, "NULL|NULL|NULL"},
		{`CREATE TABLE #mine (a INT); INSERT #mine VALUES (1); SELECT a FROM #mine; DROP TABLE #mine`, "1"},
		{`DECLARE @m TABLE (a INT); INSERT @m VALUES (1); SELECT a FROM @m`, "1"},
	} {
		if got := run(t, s, as("u", c.sql)).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
		if got := run(t, s, `SELECT USER_NAME()`).text(); got != "dbo" {
			run(t, s, `REVERT`)
		}
	}
}

// What is granted, to the user, its role or public, and what DENY takes back.
func TestGrants(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, securedTables)
	must(t, s, `ALTER ROLE r ADD MEMBER u`)
	const sees = `SELECT id FROM t`
	for _, c := range []struct{ as, sql, want string }{
		{`GRANT SELECT ON t TO r`, sees, "1"},
		{``, `SELECT name FROM sys.tables; SELECT OBJECT_NAME(OBJECT_ID('dbo.t', 'U'))`, "t\nt"},
		{`DENY SELECT ON t TO u`, sees, "error 229"},
		{`REVOKE SELECT ON t FROM u`, sees, "1"},
		{`ALTER ROLE r DROP MEMBER u`, sees, "error 229"},
		{`GRANT SELECT ON SCHEMA::dbo TO u`, sees, "1"},
		{`DENY CONTROL ON t TO u`, sees, "error 229"},
		{`REVOKE CONTROL ON t TO u; REVOKE SELECT ON SCHEMA::dbo TO u; GRANT SELECT TO public`, sees, "1"},
		{`REVOKE SELECT TO public; GRANT CONTROL ON OBJECT::dbo.t TO u`, sees + `; ALTER TABLE t ADD z INT NULL; GRANT SELECT ON t TO r`, "1"},
		{`REVOKE CONTROL ON t TO u; GRANT SELECT ON t (id, v) TO u`, `SELECT id, v FROM t; SELECT secret FROM t; SELECT COUNT(*) FROM t; SELECT id FROM t WHERE secret = 42`, "1|a\nerror 230\n1\nerror 230"},
		{`GRANT SELECT ON t TO u; DENY SELECT ON t (secret) TO u`, `SELECT id FROM t; SELECT secret FROM t; SELECT * FROM t`, "1\nerror 230\nerror 230"},
		{`REVOKE SELECT ON t FROM u; GRANT UPDATE ON t TO u`, `UPDATE t SET v = 'b'; UPDATE t SET v = 'c' WHERE id = 1; UPDATE t SET secret += 1`, "error 229\nerror 229"},
		{`GRANT SELECT ON t (id) TO u`, `UPDATE t SET v = 'c' WHERE id = 1; UPDATE t SET v = 'd' OUTPUT inserted.v`, "error 230"},
		{`REVOKE UPDATE, SELECT ON t FROM u; GRANT UPDATE ON t (v) TO u`, `UPDATE t SET v = 'e'; UPDATE t SET secret = 1`, "error 230"},
		{`GRANT INSERT, DELETE ON t TO u`, `INSERT t (id) VALUES (7); DELETE t; SELECT @@ROWCOUNT`, "2"}, // the default's sequence has the table's owner
		{``, `INSERT t (id, n) VALUES (8, NEXT VALUE FOR q)`, "error 229"},
		{`GRANT UPDATE ON q TO u`, `INSERT t (id, n) VALUES (8, NEXT VALUE FOR q); EXEC sp_sequence_get_range 'q', 5; SELECT name FROM sys.sequences`, "q"},
		{`GRANT CREATE TABLE TO u`, `CREATE TABLE mine (a INT)`, "error 2760"},
		{`GRANT ALTER ON SCHEMA::dbo TO u`, `CREATE TABLE mine (a INT); DROP TABLE mine; TRUNCATE TABLE other; ALTER TABLE t ADD y INT NULL`, ""},
		{`ALTER ROLE db_datareader ADD MEMBER u; INSERT other VALUES (9)`, `SELECT id FROM other`, "9"},
		{`ALTER ROLE db_denydatareader ADD MEMBER u`, `SELECT id FROM other`, "error 229"},
		{`ALTER ROLE db_denydatareader DROP MEMBER u; ALTER ROLE db_owner ADD MEMBER u; DENY SELECT ON other TO u`, `SELECT id FROM other; DROP TABLE t; CREATE USER w WITHOUT LOGIN`, "error 229"},
	} {
		must(t, s, c.as)
		if got := run(t, s, as("u", c.sql)).text(); got != c.want {
			t.Errorf("%s\n%s: %q, want %q", c.as, c.sql, got, c.want)
		}
	}
}

// A procedure reads what its owner owns for whoever may execute it; dynamic SQL
// in it does not, nor does sp_sequence_get_range; EXECUTE AS OWNER does.
func TestOwnershipChains(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, securedTables)
	must(t, s, `CREATE USER o WITHOUT LOGIN`)
	must(t, s, `CREATE SCHEMA s AUTHORIZATION o`)
	must(t, s, `CREATE TABLE s.t (id INT)`)
	must(t, s, `CREATE PROCEDURE p AS SELECT id FROM t; INSERT other VALUES (1); SELECT NEXT VALUE FOR q`)
	must(t, s, `CREATE PROCEDURE dyn AS EXEC ('SELECT id FROM t')`)
	must(t, s, `CREATE PROCEDURE owns WITH EXECUTE AS OWNER AS SELECT USER_NAME(); EXEC ('SELECT id FROM t'); EXEC sp_sequence_get_range 'q', 1`)
	must(t, s, `CREATE PROCEDURE range AS EXEC sp_sequence_get_range 'q', 1`)
	must(t, s, `CREATE PROCEDURE broken AS SELECT id FROM s.t`)
	must(t, s, `CREATE TRIGGER tr ON other AFTER INSERT AS UPDATE t SET v = 'tr'`)
	must(t, s, `GRANT EXECUTE ON SCHEMA::dbo TO u; GRANT INSERT ON other TO u`)
	for _, c := range []struct{ sql, want string }{
		{`EXEC p`, "1\n2"},
		{`EXEC dyn`, "error 229"},
		{`EXEC owns; SELECT USER_NAME()`, "dbo\n1\nu"},
		{`EXEC range`, "error 229"},
		{`EXEC broken`, "error 229"},
		{`INSERT other VALUES (2)`, ""},
	} {
		if got := run(t, s, as("u", c.sql)).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
	}
	if got := run(t, s, as("o", `INSERT s.t VALUES (1); SELECT id FROM s.t; DROP TABLE s.t`)).text(); got != "1" {
		t.Errorf("the owner of a schema: %q", got)
	}
}

func TestPermissionFunctions(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, securedTables)
	must(t, s, `GRANT SELECT ON t TO r; GRANT UPDATE ON t (v) TO u; ALTER ROLE r ADD MEMBER u; GRANT VIEW DATABASE STATE TO u`)
	for _, c := range []struct{ sql, want string }{
		{`SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'SELECT'), HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'INSERT'), HAS_PERMS_BY_NAME('dbo.nope', 'OBJECT', 'SELECT'), HAS_PERMS_BY_NAME('other', 'OBJECT', 'SELECT')`, "1|0|NULL|NULL"},
		{`SELECT HAS_PERMS_BY_NAME('t', 'OBJECT', 'UPDATE', 'v', 'COLUMN'), HAS_PERMS_BY_NAME('t', 'OBJECT', 'UPDATE', 'id', 'COLUMN'), HAS_PERMS_BY_NAME('t', 'OBJECT', 'UPDATE')`, "1|0|0"},
		{`SELECT HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE PERFORMANCE STATE'), HAS_PERMS_BY_NAME(NULL, 'DATABASE', 'CREATE TABLE'), HAS_PERMS_BY_NAME('dbo', 'SCHEMA', 'ALTER'), HAS_PERMS_BY_NAME('t', 'OBJECT', 'NOSUCH')`, "1|0|0|NULL"},
		{`SELECT IS_MEMBER('r'), IS_ROLEMEMBER('db_owner'), IS_ROLEMEMBER('r', 'dbo'), IS_MEMBER('nope'), IS_MEMBER('public')`, "1|0|0|NULL|1"},
		{`SELECT USER_NAME(), CURRENT_USER, LEFT(SUSER_SNAME(), 8), ORIGINAL_LOGIN(), USER_NAME(1), USER_ID('dbo'), SCHEMA_NAME()`, "u|u|S-1-9-3-|sa|dbo|1|dbo"},
		{`SELECT subentity_name, permission_name FROM sys.fn_my_permissions('dbo.t', 'OBJECT')`, "|SELECT\nid|SELECT\nv|SELECT\nsecret|SELECT\nn|SELECT\nv|UPDATE"},
		{`SELECT permission_name FROM fn_my_permissions(NULL, 'DATABASE')`, "CONNECT\nVIEW DATABASE STATE\nVIEW DATABASE PERFORMANCE STATE\nVIEW DATABASE SECURITY STATE"},
		{`SELECT COUNT(*) FROM sys.dm_tran_locks WHERE resource_type = 'x'`, "0"},
		{`SELECT k.definition FROM sys.check_constraints AS k; SELECT has_filter, filter_definition FROM sys.indexes WHERE name = 'ixf'`, "NULL\n1|NULL"},
		{`SELECT class_desc, permission_name, state_desc, USER_NAME(grantee_principal_id), minor_id FROM sys.database_permissions`, "DATABASE|CONNECT|GRANT|u|0\nDATABASE|VIEW DATABASE STATE|GRANT|u|0\nOBJECT_OR_COLUMN|SELECT|GRANT|r|0\nOBJECT_OR_COLUMN|UPDATE|GRANT|u|2"},
	} {
		if got := run(t, s, as("u", c.sql)).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
	}
	must(t, s, `GRANT VIEW DEFINITION ON t TO u`)
	if got := run(t, s, as("u", `SELECT k.definition FROM sys.check_constraints AS k; SELECT filter_definition FROM sys.indexes WHERE name = 'ixf'`)).text(); got != "([id]>(0))\n([id]>(0))" {
		t.Errorf("with VIEW DEFINITION: %q", got)
	}
	for _, c := range []struct{ sql, want string }{
		{`SELECT HAS_PERMS_BY_NAME('t', 'OBJECT', 'CONTROL'), IS_MEMBER('db_owner'), IS_ROLEMEMBER('r', 'u'), SUSER_SNAME()`, "1|1|1|sa"},
		{`SELECT r.name, m.name FROM sys.database_role_members AS x JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id JOIN sys.database_principals AS m ON m.principal_id = x.member_principal_id ORDER BY r.principal_id`, "r|u\ndb_owner|dbo"},
		{`SELECT name, type, authentication_type_desc, is_fixed_role FROM sys.database_principals WHERE principal_id BETWEEN 5 AND 16384`, "u|S|NONE|0\nr|R|NONE|0\ndb_owner|R|NONE|1"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestPrincipals(t *testing.T) {
	play(t, []batch{
		{securedTables, ""},
		{`CREATE USER u WITHOUT LOGIN`, "error 15023"},
		{`CREATE USER x FOR LOGIN nobody`, "error 15007"},
		{`CREATE USER x`, "error 15007"},
		{`CREATE USER x FROM EXTERNAL PROVIDER`, "error 50999"},
		{`CREATE LOGIN x WITH PASSWORD = 'Secret-12345'`, "error 50999"},
		{`CREATE ROLE R`, "error 15023"},
		{`CREATE ROLE r2; ALTER ROLE r ADD MEMBER r2; ALTER ROLE r2 ADD MEMBER r`, "error 15413"},
		{`ALTER ROLE r ADD MEMBER nobody`, "error 15151"},
		{`ALTER ROLE nothing ADD MEMBER u`, "error 15151"},
		{`ALTER ROLE public ADD MEMBER u`, "error 15081"},
		{`DROP ROLE r`, "error 15144"},
		{`ALTER ROLE r DROP MEMBER r2; DROP ROLE r2; DROP ROLE IF EXISTS r2; DROP ROLE r2`, "error 15151"},
		{`GRANT SELECT ON nothing TO u`, "error 15151"},
		{`GRANT SELECT ON t TO nobody`, "error 15151"},
		{`GRANT EXECUTE ON t TO u`, "error 4606"},
		{`GRANT FLY ON t TO u`, "error 102"},
		{`GRANT INSERT (id) ON t TO u`, "error 1020"},
		{`GRANT SELECT (nope) ON t TO u`, "error 1911"},
		{`GRANT SELECT ON t TO dbo`, "error 4617"},
		{`GRANT SELECT ON t TO db_datareader`, "error 4617"},
		{`GRANT SELECT ON t TO r WITH GRANT OPTION; REVOKE SELECT ON t FROM r`, "error 4611"},
		{`CREATE USER v WITHOUT LOGIN; ALTER ROLE r ADD MEMBER v`, ""},
		{`EXECUTE AS USER = 'v'; GRANT SELECT ON t TO u; REVERT; EXECUTE AS USER = 'u'; SELECT id FROM t; REVERT`, "1"},
		{`GRANT IMPERSONATE ON USER::u TO v; EXECUTE AS USER = 'v'; EXECUTE AS USER = 'u'; SELECT USER_NAME(); REVERT; SELECT USER_NAME(); REVERT; SELECT USER_NAME(); REVERT`, "u\nv\ndbo"},
		{`EXECUTE AS USER = 'nobody'`, "error 15517"},
		{`REVOKE CONNECT FROM u; EXECUTE AS USER = 'u'`, "error 916"},
		{`BEGIN TRAN; GRANT CONNECT TO u; DROP USER u; ROLLBACK; EXECUTE AS USER = 'u'`, "began\nrolled back\nerror 916"},
		{`DROP USER u; GRANT SELECT ON t TO u`, "error 15151"},
		{`CREATE USER o WITHOUT LOGIN`, ""},
		{`CREATE SCHEMA s AUTHORIZATION o`, ""},
		{`DROP USER o`, "error 15138"},
		{`EXECUTE AS USER = 'o'`, ""},
		{`SELECT USER_NAME()`, "o"},
	})
}

// A contained user logs in with its password, and is not the administrator.
func TestContainedUser(t *testing.T) {
	e := New(Config{Database: "test", Admin: "sa"})
	s := open(t, e)
	must(t, s, securedTables)
	must(t, s, `CREATE USER worker WITH PASSWORD = 'Correct-Horse-1'; GRANT SELECT ON t TO worker`)
	for _, c := range []struct {
		user, password string
		want           bool
	}{{"worker", "Correct-Horse-1", true}, {"worker", "wrong", false}, {"u", "", false}, {"nobody", "", false}, {"sa", "", false}} {
		if got := e.Authenticate(c.user, c.password); got != c.want {
			t.Errorf("%s: %v", c.user, got)
		}
	}
	w, err := e.Login(context.Background(), tds.Login{User: "worker", Password: "Correct-Horse-1", Database: "test", ODBC: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if got := run(t, w, `SELECT USER_NAME(), SUSER_SNAME(), ORIGINAL_LOGIN(); SELECT id FROM t; INSERT other VALUES (1)`).text(); got != "worker|worker|worker\n1\nerror 229" {
		t.Error(got)
	}
	must(t, s, `REVOKE CONNECT FROM worker`)
	if e.Authenticate("worker", "Correct-Horse-1") {
		t.Error("without CONNECT the user gets in")
	}
}
