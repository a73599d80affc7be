package emulator

import (
	"testing"
)

func TestEditionsSayWhatTheyAre(t *testing.T) {
	const properties = `SELECT SERVERPROPERTY('EngineEdition'), SERVERPROPERTY('ProductMajorVersion'), SERVERPROPERTY('Edition'),
		DATABASEPROPERTYEX(DB_NAME(), 'Edition'), DATABASEPROPERTYEX(DB_NAME(), 'ServiceObjective'),
		(SELECT CONCAT(compatibility_level, '/', is_read_committed_snapshot_on) FROM sys.databases WHERE name = DB_NAME())`
	for want, config := range map[string]Config{
		"5|12|SQL Azure|GeneralPurpose|GP_Gen5_2|170/1":    {},
		"5|12|SQL Azure|BusinessCritical|BC_Gen5_8|170/1":  {ServiceObjective: "BC_Gen5_8"},
		"5|12|SQL Azure|Standard|S3|170/1":                 {ServiceObjective: "S3"},
		"8|12|SQL Azure|NULL|NULL|170/1":                   {Edition: ManagedInstance},
		"3|16|Enterprise Edition (64-bit)|NULL|NULL|160/0": {Edition: SQLServerEnterprise},
		"2|16|Standard Edition (64-bit)|NULL|NULL|160/0":   {Edition: SQLServerStandard},
	} {
		_, db := start(t, config)
		if got := answer(t, db, properties); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestViewsByEdition(t *testing.T) {
	for _, c := range []struct {
		edition Edition
		view    string
		want    int32 // 0: it answers
	}{
		{AzureSQLDatabase, "sys.dm_db_wait_stats", 0},
		{AzureSQLDatabase, "sys.dm_os_sys_info", 50999},
		{AzureSQLDatabase, "sys.dm_os_sys_memory", 208},
		{AzureSQLDatabase, "sys.resource_stats", 208}, // of master
		{AzureSQLDatabase, "sys.dm_db_no_such_view", 208},
		{ManagedInstance, "sys.dm_db_resource_stats", 208},
		{ManagedInstance, "sys.server_resource_stats", 50999},
		{ManagedInstance, "sys.dm_os_job_object", 50999},
		{SQLServerStandard, "sys.dm_db_wait_stats", 208},
		{SQLServerStandard, "sys.dm_db_resource_stats", 208},
		{SQLServerStandard, "sys.dm_os_job_object", 208},
		{SQLServerStandard, "sys.dm_os_wait_stats", 0},
		{SQLServerStandard, "sys.dm_os_sys_memory", 50999},
	} {
		_, db := start(t, Config{Edition: c.edition})
		_, err := db.ExecContext(t.Context(), "SELECT COUNT(*) FROM "+c.view)
		switch {
		case c.want != 0:
			wantNumber(t, err, c.want)
		case err != nil:
			t.Errorf("%s on edition %d: %v", c.view, c.edition, err)
		}
	}
}

func TestStandardBuildsNothingOnline(t *testing.T) {
	for edition, refused := range map[Edition]bool{AzureSQLDatabase: false, SQLServerEnterprise: false, SQLServerStandard: true} {
		s, db := start(t, Config{Edition: edition})
		createTable(t, s)
		for _, statement := range []string{
			`CREATE INDEX ix ON t (n) WITH (ONLINE = ON)`,
			`ALTER INDEX ALL ON t REBUILD WITH (ONLINE = ON)`,
			`ALTER TABLE t ADD CONSTRAINT uq UNIQUE (n) WITH (ONLINE = ON)`,
		} {
			if _, err := db.ExecContext(t.Context(), statement); refused {
				wantNumber(t, err, 1712)
			} else if err != nil {
				t.Errorf("edition %d: %s: %v", edition, statement, err)
			}
		}
		if _, err := db.ExecContext(t.Context(), `ALTER INDEX ALL ON t REBUILD WITH (ONLINE = OFF)`); err != nil {
			t.Errorf("edition %d offline: %v", edition, err)
		}
	}
}

func TestConfigRefusesEditionsThatAreNone(t *testing.T) {
	for _, config := range []Config{{Edition: 77}, {Edition: SQLServerStandard, ServiceObjective: "GP_Gen5_2"}} {
		if s, err := Start(config); err == nil {
			s.Close()
			t.Errorf("%+v was started", config)
		}
	}
}
