package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"SERVERPROPERTY":     {1, 1, values(variant, serverProperty)},
	"DATABASEPROPERTYEX": {2, 2, values(variant, databaseProperty)},
	"CONNECTIONPROPERTY": {1, 1, values(variant, connectionProperty)},
})

// serverProperty is SERVERPROPERTY. What the engine cannot know is NULL, as is a
// name that does not exist.
func serverProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	engine := e.x.s.engine
	facts := engine.edition()
	parts := strings.Split(facts.version, ".")
	switch strings.ToLower(v[0].S) {
	case "productversion":
		return nvarcharValue(facts.version), nil
	case "productlevel":
		return nvarcharValue("RTM"), nil
	case "productmajorversion":
		return nvarcharValue(parts[0]), nil
	case "productminorversion":
		return nvarcharValue(parts[1]), nil
	case "productbuild":
		return nvarcharValue(parts[2]), nil
	case "edition":
		return nvarcharValue(facts.edition), nil
	case "editionid":
		return bigValue(facts.editionID), nil
	case "engineedition":
		return intValue(facts.engineEdition), nil
	case "servername", "machinename":
		return nvarcharValue(engine.config.Server), nil
	case "collation":
		return nvarcharValue(engine.database.collation.Name), nil
	case "lcid":
		return intValue(int64(engine.database.collation.LCID)), nil
	case "isxtpsupported":
		return flag(engine.inMemoryOLTP()), nil
	case "isclustered", "isfulltextinstalled", "isintegratedsecurityonly", "islocaldb", "issingleuser", "isadvancedanalyticsinstalled", "ispolybaseinstalled":
		return intValue(0), nil
	}
	return sqltype.Value{}, nil
}

// inMemoryOLTP says whether the product has it: Azure SQL Database in the tiers
// Premium and Business Critical. The engine refuses memory-optimized tables.
func (e *Engine) inMemoryOLTP() bool {
	if e.config.Edition != AzureSQLDatabase {
		return true
	}
	tier := serviceTier(e.config.ServiceObjective)
	return tier == "Premium" || tier == "BusinessCritical"
}

// databaseProperty is DATABASEPROPERTYEX. Version, the number of the file format,
// is NULL: there is no file.
func databaseProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	engine := e.x.s.engine
	d, objective := engine.database, engine.config.ServiceObjective
	if !strings.EqualFold(v[0].S, engine.config.Database) {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[1].S) {
	case "collation":
		return nvarcharValue(d.collation.Name), nil
	case "lcid":
		return intValue(int64(d.collation.LCID)), nil
	case "comparisonstyle":
		return intValue(comparisonStyle(d.collation)), nil
	case "status":
		return nvarcharValue("ONLINE"), nil
	case "updateability":
		if d.readOnly.Load() {
			return nvarcharValue("READ_ONLY"), nil
		}
		return nvarcharValue("READ_WRITE"), nil
	case "edition":
		if objective == "" {
			return sqltype.Value{}, nil
		}
		return nvarcharValue(serviceTier(objective)), nil
	case "serviceobjective":
		if objective == "" {
			return sqltype.Value{}, nil
		}
		return nvarcharValue(objective), nil
	case "recovery":
		return nvarcharValue("FULL"), nil
	case "useraccess":
		return nvarcharValue("MULTI_USER"), nil
	case "isparameterizationforced":
		return flag(d.forcedParameters.Load()), nil
	case "isxtpsupported":
		return flag(engine.inMemoryOLTP()), nil
	case "isautocreatestatistics", "isautoupdatestatistics":
		return intValue(1), nil
	case "isansinulldefault", "isansinullsenabled", "isansipaddingenabled", "isansiwarningsenabled", "isarithmeticabortenabled", "isautoclose",
		"isautocreatestatisticsincremental", "isautoshrink", "isclone", "isclosecursorsoncommitenabled", "isinstandby", "islocalcursorsdefault",
		"ismemoryoptimizedelevatetosnapshotenabled", "ismergepublished", "isnullconcat", "isnumericroundabortenabled", "ispublished",
		"isquotedidentifiersenabled", "isrecursivetriggersenabled", "issubscribed", "issyncwithbackup", "istornpagedetectionenabled", "isverifiedclone":
		return intValue(0), nil
	}
	return sqltype.Value{}, nil
}

// connectionProperty is CONNECTIONPROPERTY. Addresses are the protocol's, which
// the engine does not see: NULL.
func connectionProperty(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	switch strings.ToLower(v[0].S) {
	case "net_transport", "physical_net_transport":
		return nvarcharValue("TCP"), nil
	case "protocol_type":
		return nvarcharValue("TSQL"), nil
	case "auth_scheme":
		return nvarcharValue("SQL"), nil
	}
	return sqltype.Value{}, nil
}
