package sqlserver

import (
	"errors"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"
)

// viewRights are the rights that views of the system ask for. None is a part of
// another one's name.
var viewRights = []string{
	"VIEW DATABASE PERFORMANCE STATE", "VIEW SERVER PERFORMANCE STATE",
	"VIEW DATABASE STATE", "VIEW SERVER STATE", "VIEW DEFINITION",
}

// Denied says whether err is the answer to somebody who lacks a right, and which
// one where the server names one that views of the system ask for. A server names
// it in a message before the last, which is the one that the driver shows.
func Denied(err error) (right string, denied bool) {
	var server mssql.Error
	if !errors.As(err, &server) {
		return "", false
	}
	for _, m := range append([]mssql.Error{server}, server.All...) {
		if !knownErrors[m.Number].denied {
			continue
		}
		denied = true
		for _, name := range viewRights {
			if strings.Contains(strings.ToUpper(m.Message), name) {
				right = name
			}
		}
	}
	return right, denied
}
