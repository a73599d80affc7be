package tds

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"
)

func TestEncryptionModes(t *testing.T) {
	for _, mode := range []string{"disable", "false", "true"} {
		t.Run(mode, func(t *testing.T) {
			backend := &fakeBackend{handlers: map[string]handler{"echo": echo}}
			addr, _ := start(t, Config{Backend: backend})
			db := openDB(t, addr, "encrypt="+mode)
			// Larger than a packet, so that packets follow each other on both sides.
			text := strings.Repeat("0123456789", 5000)
			var got string
			if err := db.QueryRow("echo", text).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != text {
				t.Errorf("got %d bytes back, want %d", len(got), len(text))
			}
			want := Login{User: "app", Password: "secret Ä", Database: "orders", App: "tests", ODBC: true, PacketSize: 4096}
			backend.seen(func(b *fakeBackend) {
				got := b.logins[0]
				got.Host = ""
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("wrong login (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestStrictEncryptionIsRefused(t *testing.T) {
	addr, _ := start(t, Config{Backend: &fakeBackend{}})
	if err := openDB(t, addr, "encrypt=strict").Ping(); err == nil {
		t.Error("encrypt=strict connected")
	}
}

func TestWrongPassword(t *testing.T) {
	addr, _ := start(t, Config{Backend: &fakeBackend{}})
	db, err := sql.Open("sqlserver", "sqlserver://app:wrong@"+addr+"?encrypt=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var sqlErr mssql.Error
	if err := db.Ping(); !errors.As(err, &sqlErr) || sqlErr.Number != 18456 {
		t.Errorf("got %v, want error 18456", err)
	}
}
