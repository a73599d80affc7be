package service

import (
	"errors"
	"fmt"
	"net/url"

	"azsqloutbox/sqlserver"
)

// Check says which of the settings cannot be, in one line without a secret. It
// connects to nothing.
func (s DatabaseSettings) Check() error {
	if err := s.CheckNames(); err != nil {
		return err
	}
	if s.DSN == "" {
		return errors.New("--sql-dsn (OUTBOX_SQL_DSN) is missing: want sqlserver://user:password@host:port?database=name")
	}
	if err := sqlserver.CheckDSN(s.DSN); err != nil {
		return fmt.Errorf("--sql-dsn: %w", err)
	}
	return nil
}

// CheckNames is Check for commands that need no database.
func (s DatabaseSettings) CheckNames() error {
	for _, n := range []struct{ flag, value string }{
		{"schema", s.Schema}, {"table", s.Table}, {"claim-index", s.ClaimIndex}, {"retry-index", s.RetryIndex},
	} {
		if n.value == "" {
			return fmt.Errorf("--%s is empty, it must be a name", n.flag)
		}
	}
	if err := s.Names().Validate(); err != nil {
		return fmt.Errorf("--schema, --table, --claim-index, --retry-index: %w", err)
	}
	return nil
}

// Names are the objects of the outbox.
func (s DatabaseSettings) Names() sqlserver.Names {
	return sqlserver.Names{Schema: s.Schema, Table: s.Table, ClaimIndex: s.ClaimIndex, RetryIndex: s.RetryIndex}
}

// host is for people: never the whole DSN, which may hold a password.
func (s DatabaseSettings) host() string {
	u, err := url.Parse(s.DSN)
	if err != nil {
		return ""
	}
	return u.Host
}
