package emulator

import (
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/engine"
)

// Edition is the product that a Server stands for. It decides SERVERPROPERTY and
// @@VERSION, the options of a new database, which system views exist (208
// otherwise), and whether indexes can be built ONLINE (1712 otherwise). The rest
// is the same engine.
type Edition uint8

const (
	// AzureSQLDatabase: engine edition 5.
	AzureSQLDatabase Edition = iota
	// ManagedInstance: Azure SQL Managed Instance, engine edition 8.
	ManagedInstance
	// SQLServerEnterprise: SQL Server 2022, engine edition 3;
	// READ_COMMITTED_SNAPSHOT is off in a new database.
	SQLServerEnterprise
	// SQLServerStandard: SQL Server 2022, engine edition 2, as Enterprise but
	// without online operations.
	SQLServerStandard
)

var engineEditions = map[Edition]engine.Edition{
	AzureSQLDatabase:    engine.AzureSQLDatabase,
	ManagedInstance:     engine.AzureManagedInstance,
	SQLServerEnterprise: engine.Enterprise2022,
	SQLServerStandard:   engine.Standard2022,
}

func (c Config) validateEdition() error {
	if _, ok := engineEditions[c.Edition]; !ok {
		return fmt.Errorf("emulator: Edition %d is none", c.Edition)
	}
	if c.Edition != AzureSQLDatabase && c.ServiceObjective != "" {
		return fmt.Errorf("emulator: ServiceObjective %q is for AzureSQLDatabase only", c.ServiceObjective)
	}
	return nil
}
