package sqlserver_test

import (
	"sync"
	"testing"

	"azsqloutbox/sqlserver/emulator"
)

// embedded is started once: every test has tables of its own.
var embedded = sync.OnceValues(func() (*emulator.Server, error) {
	return emulator.Start(emulator.Config{})
})

func embeddedDSN(t testing.TB) string {
	t.Helper()
	server, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return server.DSN()
}
