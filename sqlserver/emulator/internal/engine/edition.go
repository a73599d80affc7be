package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// Edition is the product that the engine stands for. It decides what
// SERVERPROPERTY and @@VERSION say, the defaults of the database, which system
// views there are, and whether indexes can be built online.
type Edition uint8

const (
	AzureSQLDatabase Edition = iota
	AzureManagedInstance
	Enterprise2022
	Standard2022
)

// editionFacts are SERVERPROPERTY (sql-docs, "SERVERPROPERTY").
type editionFacts struct {
	engineEdition int64
	edition       string
	editionID     int64
	version       string
	microsoft     int64 // @@MICROSOFTVERSION
	text          string
}

var editions = map[Edition]editionFacts{
	AzureSQLDatabase:     {5, "SQL Azure", 1674378470, "12.0.2000.8", 0x0C0007D0, "Microsoft SQL Azure (RTM) - 12.0.2000.8"},
	AzureManagedInstance: {8, "SQL Azure", 1674378470, "12.0.2000.8", 0x0C0007D0, "Microsoft SQL Azure (RTM) - 12.0.2000.8"},
	Enterprise2022:       {3, "Enterprise Edition (64-bit)", 1804890536, "16.0.1000.6", 0x100003E8, "Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64) Enterprise Edition (64-bit)"},
	Standard2022:         {2, "Standard Edition (64-bit)", -1534726760, "16.0.1000.6", 0x100003E8, "Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64) Standard Edition (64-bit)"},
}

func (e *Engine) edition() editionFacts { return editions[e.config.Edition] }

// versionText is @@VERSION, with the emulator's name so that nobody takes it for
// the real thing.
func (f editionFacts) versionText() string {
	return f.text + " (embedded emulator for tests, not SQL Server)"
}

// boxed says whether it is an installed SQL Server.
func (e Edition) boxed() bool { return e == Enterprise2022 || e == Standard2022 }

// database are the options of a new database.
func (e Edition) database() *databaseOptions {
	o := newDatabaseOptions()
	if e.boxed() {
		o.readCommittedSnapshot.Store(false)
		o.compatibility.Store(160)
	}
	return o
}

// serviceTier is DATABASEPROPERTYEX 'Edition' for a service objective
// (sql-docs, "DATABASEPROPERTYEX").
func serviceTier(objective string) string {
	switch prefix, _, _ := strings.Cut(strings.ToUpper(objective), "_"); {
	case prefix == "GP":
		return "GeneralPurpose"
	case prefix == "BC":
		return "BusinessCritical"
	case prefix == "HS":
		return "Hyperscale"
	case prefix == "BASIC":
		return "Basic"
	case strings.HasPrefix(prefix, "P"):
		return "Premium"
	}
	return "Standard"
}

// online refuses an online operation where the edition has none (sql-docs,
// "Editions and supported features of SQL Server 2022").
func (e *Engine) online(options []ast.IndexOption) error {
	if e.config.Edition != Standard2022 {
		return nil
	}
	for _, o := range options {
		switch o := o.(type) {
		case *ast.OnlineIndexOption:
			if o.OptionState == "On" {
				return errOnlineEdition()
			}
		case *ast.IndexStateOption: // of a constraint
			if o.OptionKind == "Online" && o.OptionState == "On" {
				return errOnlineEdition()
			}
		}
	}
	return nil
}

func errOnlineEdition() error {
	return raise(1712, 16, 1, "Online index operations can only be performed in Enterprise edition of SQL Server or Azure SQL Edge.")
}
