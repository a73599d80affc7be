package diagnose

import (
	"errors"
	"fmt"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
)

func TestGrant(t *testing.T) {
	database := func(edition, major int, objective string) environment {
		return environment{Database: Database{ServiceObjective: objective}, edition: edition, major: major, user: "worker]", login: "login"}
	}
	for _, c := range []struct {
		name  string
		env   environment
		scope scope
		named string // in the error
		want  string
	}{
		{"Azure SQL Database", database(5, 12, "GP_Gen5_2"), ofServer, "", "GRANT VIEW DATABASE STATE TO [worker]]];"},
		{"Azure SQL Database, named", database(5, 12, "GP_Gen5_2"), ofServer, "VIEW DATABASE STATE", "GRANT VIEW DATABASE STATE TO [worker]]];"},
		{"Azure SQL Database, small", database(5, 12, "S0"), ofServer, "VIEW DATABASE STATE", "ALTER SERVER ROLE ##MS_ServerStateReader## ADD MEMBER [login]; -- in master: with S0 a right in the database is not enough"},
		{"Azure SQL Database, small, of the database", database(5, 12, "S0"), ofDatabase, "", "GRANT VIEW DATABASE STATE TO [worker]]];"},
		{"elastic pool", database(5, 12, "ElasticPool"), ofServer, "", "ALTER SERVER ROLE ##MS_ServerStateReader## ADD MEMBER [login]; -- in master: with ElasticPool a right in the database is not enough"},
		{"Managed Instance", database(8, 16, ""), ofServer, "", "GRANT VIEW SERVER STATE TO [login]; -- in master"},
		{"SQL Server 2019", database(3, 15, ""), ofServer, "", "GRANT VIEW SERVER STATE TO [login]; -- in master"},
		{"SQL Server 2019, of the database", database(3, 15, ""), ofDatabase, "", "GRANT VIEW DATABASE STATE TO [worker]]];"},
		{"SQL Server 2022", database(3, 16, ""), ofServer, "", "GRANT VIEW SERVER PERFORMANCE STATE TO [login]; -- in master"},
		{"SQL Server 2022, of the database", database(2, 16, ""), ofDatabase, "", "GRANT VIEW DATABASE PERFORMANCE STATE TO [worker]]];"},
		{"definitions", database(2, 16, ""), ofDatabase, "VIEW DEFINITION", "GRANT VIEW DEFINITION TO [worker]]];"},
	} {
		if got := c.env.grant(c.scope, c.named); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestReason(t *testing.T) {
	env := environment{edition: 2, major: 16, login: "l", user: "u"}
	// As a server sends it: the right first, then the general error, which is the
	// one that the driver shows.
	two := mssql.Error{Number: 297, Message: "The user does not have permission to perform this action.", All: []mssql.Error{
		{Number: 300, Message: "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'."},
		{Number: 297, Message: "The user does not have permission to perform this action."},
	}}
	for _, c := range []struct {
		err            error
		reason, remedy string
	}{
		{fmt.Errorf("read: %w", two), "VIEW SERVER PERFORMANCE STATE is missing.", "GRANT VIEW SERVER PERFORMANCE STATE TO [l]; -- in master"},
		{mssql.Error{Number: 229, Message: "The SELECT permission was denied on the object"}, "A right is missing.", "GRANT VIEW SERVER PERFORMANCE STATE TO [l]; -- in master"},
		{mssql.Error{Number: 208, Message: "Invalid object name 'sys.dm_x'."}, "Not to be had on this engine: Invalid object name 'sys.dm_x'.", ""},
		{errors.New("broken"), "broken", ""},
	} {
		if reason, remedy := env.reason(ofServer, c.err); reason != c.reason || remedy != c.remedy {
			t.Errorf("%v: %q, %q", c.err, reason, remedy)
		}
	}
}
