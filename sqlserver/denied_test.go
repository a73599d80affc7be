package sqlserver_test

import (
	"errors"
	"fmt"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

func TestDenied(t *testing.T) {
	// A server names the right first; the driver shows the last message.
	named := server(300, 297)
	named.All[0].Message = "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'."
	for name, c := range map[string]struct {
		err    error
		right  string
		denied bool
	}{
		"a right with a name":   {named, "VIEW SERVER PERFORMANCE STATE", true},
		"in other words":        {mssql.Error{Number: 262, Message: "View Database State permission denied in database 'x'."}, "VIEW DATABASE STATE", true},
		"a right on an object":  {server(229), "", true},
		"classified":            {sqlserver.Classify("read", server(230)), "", true},
		"wrapped":               {fmt.Errorf("read: %w", server(297)), "", true},
		"no such object":        {server(208), "", false},
		"none from the server":  {errors.New("VIEW SERVER STATE permission was denied"), "", false},
		"an unknown number":     {server(12345), "", false},
		"another, with a right": {mssql.Error{Number: 50000, Message: "VIEW SERVER STATE"}, "", false},
	} {
		if right, denied := sqlserver.Denied(c.err); right != c.right || denied != c.denied {
			t.Errorf("%s: %q %v, want %q %v", name, right, denied, c.right, c.denied)
		}
	}
}
