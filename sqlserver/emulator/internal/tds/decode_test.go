package tds

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// TestParameterForms decodes what go-mssqldb never sends but others do.
func TestParameterForms(t *testing.T) {
	latin := &sqltype.Collation{LCID: 0x409, Flags: 0x0d, SortID: 52, CodePage: 1252, AccentSensitive: true}
	tests := []struct {
		name string
		wire []byte
		typ  sqltype.Type
		want sqltype.Value
	}{
		{"fixed int", []byte{idInt4, 0xfe, 0xff, 0xff, 0xff}, sqltype.Type{Kind: sqltype.Int}, sqltype.Value{Kind: sqltype.Int, N: -2}},
		{"an INTN says its size twice", []byte{idIntN, 8, 2, 0xff, 0xff}, sqltype.Type{Kind: sqltype.BigInt}, sqltype.Value{Kind: sqltype.SmallInt, N: -1}},
		{
			"decimal",
			[]byte{idDecimalN, 5, 9, 2, 5, 0, 0x39, 0x30, 0, 0},
			sqltype.Type{Kind: sqltype.Decimal, Precision: 9, Scale: 2},
			sqltype.Value{Kind: sqltype.Decimal, N: -12345, Scale: 2},
		},
		{
			"decimal of 38 digits", append([]byte{idNumericN, 17, 38, 38, 17, 1}, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x22, 0x8a, 0x09, 0x7a, 0xc4, 0x86, 0x5a, 0xa8, 0x4c, 0x3b, 0x4b),
			sqltype.Type{Kind: sqltype.Decimal, Precision: 38, Scale: 38},
			sqltype.Value{Kind: sqltype.Decimal, Scale: 38, Big: true, S: "0.99999999999999999999999999999999999999"},
		},
		{"smallmoney", []byte{idMoney4, 0x10, 0x27, 0, 0}, sqltype.Type{Kind: sqltype.Money}, sqltype.Value{Kind: sqltype.Money, N: 10000, Scale: 4}},
		{"money, high half first", []byte{idMoneyN, 8, 8, 0xff, 0xff, 0xff, 0xff, 0xf0, 0xd8, 0xff, 0xff}, sqltype.Type{Kind: sqltype.Money}, sqltype.Value{Kind: sqltype.Money, N: -10000, Scale: 4}},
		{"smalldatetime", []byte{idDateTime4, 1, 0, 2, 0}, sqltype.Type{Kind: sqltype.SmallDateTime}, sqltype.Value{Kind: sqltype.SmallDateTime, N: (daysTo1900+1)*ticksPerDay + 2*ticksPerMinute}},
		{"datetime before 1900", []byte{idDateTime, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, sqltype.Type{Kind: sqltype.DateTime}, sqltype.Value{Kind: sqltype.DateTime, N: (daysTo1900-1)*ticksPerDay + 33333}},
		{
			"text", append([]byte{idText, 0xff, 0xff, 0xff, 0x7f, 9, 4, 0xd0, 0, 52, 2, 0, 0, 0}, 0x80, 'x'),
			sqltype.Type{Kind: sqltype.VarChar, Length: sqltype.Max, Collation: latin},
			sqltype.Value{Kind: sqltype.VarChar, S: "€x"},
		},
		{
			"varchar of MAX in two chunks",
			[]byte{idBigVarChar, 0xff, 0xff, 0, 0, 0, 0, 0, 0xfe, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 0x81, 0, 0, 0, 0},
			sqltype.Type{Kind: sqltype.VarChar, Length: sqltype.Max},
			sqltype.Value{Kind: sqltype.VarChar, S: "a\u0081"},
		},
		{"old varchar", []byte{idOldVarChar, 10, 2, 'h', 'i'}, sqltype.Type{Kind: sqltype.VarChar, Length: 10}, sqltype.Value{Kind: sqltype.VarChar, S: "hi"}},
		{
			"half a surrogate pair",
			[]byte{idNVarChar, 8, 0, 0, 0, 0, 0, 0, 4, 0, 0x34, 0xd8, 'a', 0},
			sqltype.Type{Kind: sqltype.NVarChar, Length: 4},
			sqltype.Value{Kind: sqltype.NVarChar, S: "\ufffda"},
		},
		{"xml with a byte order mark", []byte{idXML, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0xff, 0xfe, 'x', 0, 0, 0, 0, 0}, sqltype.Type{Kind: sqltype.XML, Length: sqltype.Max}, sqltype.Value{Kind: sqltype.XML, S: "x"}},
		{
			"variant",
			[]byte{idVariant, 0x49, 0x1f, 0, 0, 10, 0, 0, 0, idBigVarChar, 7, 9, 4, 0xd0, 0, 52, 8, 0, 0xe9},
			sqltype.Type{Kind: sqltype.SQLVariant},
			sqltype.Value{Kind: sqltype.VarChar, S: "é"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := fuzzMessage(packetRPC, append([]byte{0, 0}, tt.wire...))
			p := m.param()
			if m.err != nil || m.more() {
				t.Fatalf("%v, or something is left", m.err)
			}
			if diff := cmp.Diff(tt.typ, p.Type); diff != "" {
				t.Errorf("wrong type (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, p.Value); diff != "" {
				t.Errorf("wrong value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImpossibleParametersAreRefused(t *testing.T) {
	for name, wire := range map[string][]byte{
		"bit of 2 bytes":                {idBitN, 2},
		"longer than its type":          {idBigVarBinary, 2, 0, 3, 0, 1, 2, 3},
		"decimal(39)":                   {idDecimalN, 17, 39, 0, 0},
		"time of scale 8":               {idTime, 8, 0},
		"25 hours":                      {idTime, 0, 3, 0x90, 0x5f, 1},
		"the year 10000":                {idDate, 3, 0xdb, 0xb9, 0x37},
		"odd nvarchar":                  {idNVarChar, 8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 2, 3},
		"varchar of another language":   {idBigVarChar, 8, 0, 0x19, 4, 0, 0, 0, 1, 0, 0xc0},
		"CLR type":                      {idUDT},
		"announced with another length": {idBigVarBinary, 0xff, 0xff, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'a', 0, 0, 0, 0},
		"cut":                           {idInt8, 1, 2, 3},
		"TVP of columns without values": {idTable, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, idNull, 0, tvpEnd, 7},
	} {
		t.Run(name, func(t *testing.T) {
			m := fuzzMessage(packetRPC, append([]byte{0, 0}, wire...))
			m.param()
			if !errors.Is(m.err, errMalformed) {
				t.Errorf("got %v, want a refusal", m.err)
			}
		})
	}
}
