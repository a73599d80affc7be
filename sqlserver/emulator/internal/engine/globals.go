package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// globalVariables are the @@ functions; another one is one entry.
var globalVariables = map[string]struct {
	typ   sqltype.Type
	value func(s *session) sqltype.Value
}{
	"@@ROWCOUNT":         {intType, func(s *session) sqltype.Value { return intValue(s.rowCountVar) }},
	"ROWCOUNT_BIG":       {bigType, func(s *session) sqltype.Value { return bigValue(s.rowCountVar) }},
	"@@ERROR":            {intType, func(s *session) sqltype.Value { return intValue(int64(s.lastError)) }},
	"@@TRANCOUNT":        {intType, func(s *session) sqltype.Value { return intValue(int64(s.tranCount())) }},
	"@@SPID":             {smallType, func(s *session) sqltype.Value { return sqltype.Value{Kind: sqltype.SmallInt, N: s.spid()} }},
	"@@NESTLEVEL":        {intType, func(s *session) sqltype.Value { return intValue(int64(s.nesting)) }},
	"@@IDENTITY":         {sqltype.Type{Kind: sqltype.Decimal, Precision: 38}, func(s *session) sqltype.Value { return s.globalIdentity }},
	"@@VERSION":          {nvarcharType(300), func(s *session) sqltype.Value { return nvarcharValue(s.engine.edition().versionText()) }},
	"@@SERVERNAME":       {nvarcharType(128), func(s *session) sqltype.Value { return nvarcharValue(s.engine.config.Server) }},
	"@@SERVICENAME":      {nvarcharType(128), func(*session) sqltype.Value { return nvarcharValue("MSSQLSERVER") }},
	"@@LOCK_TIMEOUT":     {intType, func(s *session) sqltype.Value { return intValue(s.set.lockTimeoutMillis()) }},
	"@@OPTIONS":          {intType, func(s *session) sqltype.Value { return intValue(s.set.optionBits()) }},
	"@@MAX_PRECISION":    {tinyType, func(*session) sqltype.Value { return sqltype.Value{Kind: sqltype.TinyInt, N: 38} }},
	"@@DATEFIRST":        {tinyType, func(*session) sqltype.Value { return sqltype.Value{Kind: sqltype.TinyInt, N: 7} }},
	"@@LANGUAGE":         {nvarcharType(128), func(*session) sqltype.Value { return nvarcharValue("us_english") }},
	"@@MICROSOFTVERSION": {intType, func(s *session) sqltype.Value { return intValue(s.engine.edition().microsoft) }},
	"@@TEXTSIZE":         {intType, func(s *session) sqltype.Value { return intValue(s.set.textSize) }},
	"@@PROCID":           {intType, func(*session) sqltype.Value { return intValue(0) }},
	"@@FETCH_STATUS":     {intType, func(*session) sqltype.Value { return intValue(0) }},
}

func (c *compiler) globalVariable(name string) (*scalar, error) {
	g, ok := globalVariables[strings.ToUpper(name)]
	if !ok {
		return nil, errUndeclared(name)
	}
	return &scalar{typ: g.typ, eval: func(e *env) (sqltype.Value, error) { return g.value(e.x.s), nil }}, nil
}

// spid: user sessions begin at 51.
func (s *session) spid() int64 { return s.id + 50 }

func (s *settings) lockTimeoutMillis() int64 {
	if s.lockTimeout < 0 {
		return -1
	}
	return s.lockTimeout.Milliseconds()
}

// optionBits is @@OPTIONS (sql-docs, "Configure the user options").
func (s *settings) optionBits() int64 {
	var bits int64
	for _, o := range []struct {
		on  bool
		bit int64
	}{
		{s.cursorClose, 4},
		{s.ansiWarnings, 8},
		{s.ansiPadding, 16},
		{s.ansiNulls, 32},
		{s.arithAbort, 64},
		{s.arithIgnore, 128},
		{s.quotedIdentifier, 256},
		{s.noCount, 512},
		{s.ansiNullDefault, 1024},
		{s.concatNull, 4096},
		{s.numericRoundAbort, 8192},
		{s.xactAbort, 16384},
	} {
		if o.on {
			bits |= o.bit
		}
	}
	return bits
}
