package sqltype

import (
	"errors"
	"strings"
	"testing"
)

var (
	utf8Collation, _ = LookupCollation("Latin1_General_100_BIN2_UTF8")

	nvarchar = func(s string) Value { return Value{Kind: NVarChar, S: s} }
	integer  = func(n int64) Value { return Value{Kind: BigInt, N: n} }
)

func TestConvert(t *testing.T) {
	cp1252 := func(n int) Type { return Type{Kind: VarChar, Length: n, Collation: DefaultCollation} }
	utf8 := func(n int) Type { return Type{Kind: VarChar, Length: n, Collation: utf8Collation} }
	for _, c := range []struct {
		in   Value
		to   Type
		want string
	}{
		{nvarchar("grün"), cp1252(10), "grün"},
		{nvarchar("āž日"), cp1252(10), "až?"},
		{nvarchar("日"), utf8(3), "日"},
		{nvarchar("日"), utf8(2), ""}, // never half a character
		{nvarchar("abc"), cp1252(2), "ab"},
		{nvarchar("a"), Type{Kind: Char, Length: 3, Collation: DefaultCollation}, "a  "},
		{nvarchar("😀a"), Type{Kind: NVarChar, Length: 2}, "😀"},
		{nvarchar("😀a"), Type{Kind: NVarChar, Length: 1}, ""},
		{nvarchar(" 12 "), Type{Kind: Int}, "12"},
		{nvarchar(""), Type{Kind: Int}, "0"},
		{nvarchar("true"), Type{Kind: Bit}, "1"},
		{nvarchar("1.25"), Type{Kind: Decimal, Precision: 5, Scale: 1}, "1.3"},
		{nvarchar("123456789012345678901234567890.5"), Type{Kind: Decimal, Precision: 38, Scale: 1}, "123456789012345678901234567890.5"},
		{integer(5), Type{Kind: Decimal, Precision: 5, Scale: 2}, "5.00"},
		{integer(2), Type{Kind: Bit}, "1"},
		{FloatValue(Float, 2.9), Type{Kind: Int}, "2"},
		{nvarchar("2026-02-28T23:59:59.9995"), Type{Kind: DateTime2, Scale: 3}, "2026-03-01 00:00:00.000"},
		{nvarchar("2026-02-28 23:59:59.998"), Type{Kind: DateTime}, "Feb 28 2026 11:59PM"},
		{nvarchar("20260228"), Type{Kind: Date}, "2026-02-28"},
		{nvarchar("2026-02-28T12:00:00+02:00"), Type{Kind: DateTimeOffset}, "2026-02-28 12:00:00 +02:00"},
		{nvarchar("12:30"), Type{Kind: Time, Scale: 0}, "12:30:00"},
		{nvarchar("6F9619FF-8B86-D011-B42D-00C04FC964FF"), Type{Kind: UniqueIdentifier}, "6F9619FF-8B86-D011-B42D-00C04FC964FF"},
	} {
		got, err := Convert(c.in, c.to, 0)
		if err != nil || Format(got) != c.want {
			t.Errorf("%q as %s = %q, %v, want %q", Format(c.in), c.to, Format(got), err, c.want)
		}
	}
}

func TestConvertErrors(t *testing.T) {
	for _, c := range []struct {
		in   Value
		to   Type
		want int32
	}{
		{nvarchar("x"), Type{Kind: Int}, 245},
		{nvarchar("x"), Type{Kind: BigInt}, 8114},
		{nvarchar("99999999999"), Type{Kind: Int}, 248},
		{nvarchar("300"), Type{Kind: TinyInt}, 244},
		{nvarchar("x"), Type{Kind: Decimal, Precision: 5}, 8114},
		{nvarchar("123456"), Type{Kind: Decimal, Precision: 5}, 8115},
		{nvarchar("2026-13-01"), Type{Kind: Date}, 241},
		{nvarchar("1700-01-01"), Type{Kind: DateTime}, 242},
		{nvarchar("not a guid"), Type{Kind: UniqueIdentifier}, 8169},
		{integer(300), Type{Kind: TinyInt}, 220},
		{integer(1 << 40), Type{Kind: Int}, 8115},
		{integer(1 << 40), Type{Kind: VarChar, Length: 3}, 8115},
		{Value{Kind: Date, N: 1}, Type{Kind: Int}, 529},
	} {
		_, err := Convert(c.in, c.to, 0)
		var e *Error
		if !errors.As(err, &e) || e.Number != c.want {
			t.Errorf("%q as %s: %v, want error %d", Format(c.in), c.to, err, c.want)
		}
	}
}

func TestAssign(t *testing.T) {
	five := Type{Kind: VarChar, Length: 5, Collation: utf8Collation}
	var cut *Truncation
	if _, err := Assign(nvarchar("ab日本"), five); !errors.As(err, &cut) || cut.Kept != "ab日" {
		t.Errorf("got %v, want a truncation that keeps \"ab日\"", err)
	}
	if v, err := Assign(nvarchar("abc     "), five); err != nil || v.S != "abc  " {
		t.Errorf("trailing spaces: %q, %v", v.S, err)
	}
	if _, err := Assign(Value{Kind: VarBinary, S: "123456"}, Type{Kind: VarBinary, Length: 5}); !errors.As(err, &cut) {
		t.Errorf("binary: %v", err)
	}
	if v, err := Assign(Value{}, five); err != nil || !v.IsNull() {
		t.Errorf("NULL: %v, %v", v, err)
	}
}

func TestTextBytes(t *testing.T) {
	ü := Value{Kind: VarChar, S: "ü"}
	if got := TextBytes(ü, DefaultCollation).S; got != "\xfc" {
		t.Errorf("code page 1252: %q", got)
	}
	if got := TextBytes(ü, utf8Collation).S; got != "ü" {
		t.Errorf("UTF-8: %q", got)
	}
}

func TestDataLength(t *testing.T) {
	for _, c := range []struct {
		v    Value
		t    Type
		want int64
	}{
		{nvarchar("a😀"), Type{Kind: NVarChar}, 6},
		{Value{Kind: VarChar, S: "ü"}, Type{Kind: VarChar, Collation: DefaultCollation}, 1},
		{Value{Kind: VarChar, S: "ü"}, Type{Kind: VarChar, Collation: utf8Collation}, 2},
		{integer(1), Type{Kind: BigInt}, 8},
		{Value{Kind: DateTime2}, Type{Kind: DateTime2, Scale: 3}, 7},
		{Value{Kind: DateTime2}, Type{Kind: DateTime2, Scale: 7}, 8},
	} {
		if got := DataLength(c.v, c.t); got != c.want {
			t.Errorf("%s: %d, want %d", c.t, got, c.want)
		}
	}
}

func TestFormatStyles(t *testing.T) {
	when, err := Convert(nvarchar("2026-01-02T03:04:05.678"), Type{Kind: DateTime2, Scale: 3}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for style, want := range map[int]string{
		0: "2026-01-02 03:04:05.678", 23: "2026-01-02", 112: "20260102", 108: "03:04:05",
		120: "2026-01-02 03:04:05", 121: "2026-01-02 03:04:05.678", 126: "2026-01-02T03:04:05.678", 101: "01/02/2026", 103: "02/01/2026",
	} {
		if got, err := FormatStyle(when, style); err != nil || got != want {
			t.Errorf("style %d: %q, %v, want %q", style, got, err, want)
		}
	}
	var e *Error
	if _, err := FormatStyle(when, 999); !errors.As(err, &e) || e.Number != 281 {
		t.Errorf("style 999: %v", err)
	}
}

// What a value's own text says must come back as the value.
func FuzzConvertText(f *testing.F) {
	for _, s := range []string{"", "1", "-1.5", "2026-01-01", "12:00:00.1234567", "x", "9223372036854775807", "1e5", strings.Repeat("9", 50)} {
		f.Add(s)
	}
	types := []Type{
		{Kind: Int},
		{Kind: BigInt},
		{Kind: Decimal, Precision: 38, Scale: 5},
		{Kind: Decimal, Precision: 9, Scale: 2},
		{Kind: Date},
		{Kind: DateTime2, Scale: 7},
		{Kind: Time, Scale: 3},
		{Kind: DateTimeOffset, Scale: 0},
		{Kind: UniqueIdentifier},
		{Kind: Bit},
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, typ := range types {
			v, err := Convert(nvarchar(s), typ, 0)
			if err != nil {
				continue
			}
			again, err := Convert(nvarchar(Format(v)), typ, 0)
			if err != nil || CompareSame(v, again) != 0 {
				t.Fatalf("%q as %s is %q, which reads back as %q, %v", s, typ, Format(v), Format(again), err)
			}
		}
	})
}
