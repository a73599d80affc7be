package sqlserver_test

import (
	"strings"
	"testing"

	"azsqloutbox/sqlserver"
)

func TestCheckDSN(t *testing.T) {
	for dsn, says := range map[string]string{
		"sqlserver://u:p@host:1433?database=d":                                            "",
		"sqlserver://u:p@host?database=d&encrypt=true&TrustServerCertificate=true":        "",
		"sqlserver://host.database.windows.net?database=d&fedauth=ActiveDirectoryDefault": "",
		"sqlserver://host?database=d&fedauth=ActiveDirectoryManagedIdentity&user+id=abc":  "",
		"":                                       "is empty",
		"sqlserver://u:secret@host?database=d\n": "white space at an end",
		" sqlserver://u:secret@host?database=d":  "white space at an end",
		"sqlserver://u:sec\x00ret@host?database=d":                            "a control character",
		"server=host;user id=u;password=secret":                               "is an ADO connection string",
		"postgres://u:secret@host/d":                                          "must begin with sqlserver://",
		"sqlserver://u:sec/ret@host":                                          "percent-encoded",
		"sqlserver://u:secret@:1433?database=d":                               "names no host",
		"sqlserver://u:secret@host?databse=d":                                 `unknown parameter "databse", did you mean "database"`,
		"sqlserver://u:secret@host?database=d&encypt=true":                    `unknown parameter "encypt", did you mean "encrypt"`,
		"sqlserver://u:secret@host?database=d&wibble=1":                       `unknown parameter "wibble"`,
		"sqlserver://u:secret@host?database=d&database=e":                     `the parameter "database" twice`,
		"sqlserver://u:secret@host?database=d&Database=e":                     `the parameter "database" twice`,
		"sqlserver://u:secret@host?database=d&encrypt=maybe":                  "encrypt",
		"sqlserver://u:secret@host?database=d&connection+timeout=soon":        "timeout",
		"sqlserver://u:p@host?database=d&timezone=UTC":                        "",
		"sqlserver://u:secret@host?database=d&timezone=Europe%2FBerlin":       "timezone, \"Europe/Berlin\"",
		"sqlserver://host?database=d&fedauth=activedirectorydefault":          `did you mean "ActiveDirectoryDefault"`,
		"sqlserver://host?database=d&fedauth=ActiveDirectoryMangedIdentity":   `did you mean "ActiveDirectoryManagedIdentity"`,
		"sqlserver://host?database=d&fedauth=Kerberos":                        "it may be ActiveDirectoryDefault, ",
		"sqlserver://host?database=d&fedauth=ActiveDirectoryServicePrincipal": "client id",
		"sqlserver://u:%zz@host?database=d":                                   "percent-encoded",
		"sqlserver://u:secret@host?database=%zz":                              "percent-encoded",
	} {
		err := sqlserver.CheckDSN(dsn)
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", dsn, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: got %v, want one that says %q", dsn, err, says)
		case err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "ret@")):
			t.Errorf("%s: the error holds the password: %v", dsn, err)
		}
	}
}

func TestOpenLimitsThePool(t *testing.T) {
	db, err := sqlserver.Open("sqlserver://u:p@127.0.0.1:1?database=d", sqlserver.Options{MaxOpenConns: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n := db.Stats().MaxOpenConnections; n != 7 {
		t.Errorf("the pool takes %d connections, want 7", n)
	}
}
