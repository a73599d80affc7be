package engine

import (
	"strings"
	"unicode/utf8"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"LEN":        {1, 1, textual(lengthType, func(_ *env, v []sqltype.Value) (sqltype.Value, error) { return intValue(lenOf(v[0])), nil })},
	"DATALENGTH": {1, 1, buildDataLength},
	"LEFT":       {2, 2, counting(1, 1, textual(firstType, left))},
	"RIGHT":      {2, 2, counting(1, 1, textual(firstType, right))},
	"SUBSTRING":  {3, 3, counting(1, 2, buildSubstring)},
	"CHARINDEX":  {2, 3, counting(2, 2, buildCharIndex)},
	"REPLACE":    {3, 3, cutToType(buildReplace)},
	"UPPER":      {1, 1, textual(firstType, mapText(strings.ToUpper))},
	"LOWER":      {1, 1, textual(firstType, mapText(strings.ToLower))},
	"LTRIM":      {1, 1, textual(firstType, mapText(func(s string) string { return strings.TrimLeft(s, " ") }))},
	"RTRIM":      {1, 1, textual(firstType, mapText(func(s string) string { return strings.TrimRight(s, " ") }))},
	"TRIM":       {1, 1, textual(firstType, mapText(func(s string) string { return strings.Trim(s, " ") }))},
	"REVERSE":    {1, 1, textual(firstType, mapText(reverse))},
	"REPLICATE":  {2, 2, counting(1, 1, cutToType(textual(longType, replicate)))},
	"SPACE":      {1, 1, counting(0, 0, values(fixed(varcharType(8000)), space))},
	"STUFF":      {4, 4, counting(1, 2, textual(longType, stuff))},
	"CHAR":       {1, 1, counting(0, 0, values(fixed(varcharType(1)), char))},
	"NCHAR":      {1, 1, counting(0, 0, values(fixed(nvarcharType(1)), nchar))},
	"ASCII":      {1, 1, textual(fixed(intType), ascii)},
	"UNICODE":    {1, 1, textual(fixed(intType), unicodePoint)},
	"QUOTENAME":  {1, 2, textual(fixed(nvarcharType(258)), quoteName)},
	"PATINDEX":   {2, 2, buildPatIndex},
	"TRANSLATE":  {3, 3, textual(firstType, translate)},
	"STR":        {1, 3, values(fixed(varcharType(8000)), str)},
})

// firstType is the first argument's type, as a type of variable length.
func firstType(args []*scalar) sqltype.Type {
	t := args[0].typ
	switch t.Kind {
	case sqltype.Char:
		t.Kind = sqltype.VarChar
	case sqltype.NChar:
		t.Kind = sqltype.NVarChar
	case sqltype.Binary:
		t.Kind = sqltype.VarBinary
	}
	return t
}

// longType is the first argument's type at its longest short of MAX.
func longType(args []*scalar) sqltype.Type {
	t := firstType(args)
	if t.Length != sqltype.Max {
		t.Length = 8000
		if t.Kind.IsUnicode() {
			t.Length = 4000
		}
	}
	return t
}

func lengthType(args []*scalar) sqltype.Type {
	if isLong(args[0].typ) && args[0].typ.Length == sqltype.Max {
		return bigType
	}
	return intType
}

// lenOf counts characters without trailing spaces.
func lenOf(v sqltype.Value) int64 {
	s := strings.TrimRight(v.S, " ")
	if v.Kind.IsUnicode() {
		return int64(sqltype.UTF16Length(s))
	}
	return int64(utf8.RuneCountInString(s))
}

func buildDataLength(_ *compiler, args []*scalar) (*scalar, error) {
	t, from, arg := lengthType(args), args[0].typ, args[0].eval
	s := derive(t, func(e *env) (sqltype.Value, error) {
		v, err := arg(e)
		if err != nil || v.IsNull() {
			return sqltype.Value{}, err
		}
		return sqltype.Value{Kind: t.Kind, N: sqltype.DataLength(v, from)}, nil
	}, args...)
	s.constant = false
	return s, nil
}

func mapText(f func(string) string) func(*env, []sqltype.Value) (sqltype.Value, error) {
	return func(_ *env, v []sqltype.Value) (sqltype.Value, error) { return withText(v[0], f(v[0].S)), nil }
}

// withText is a text of the same kind, of variable length.
func withText(v sqltype.Value, s string) sqltype.Value {
	k := v.Kind
	switch k {
	case sqltype.Char:
		k = sqltype.VarChar
	case sqltype.NChar:
		k = sqltype.NVarChar
	}
	return sqltype.Value{Kind: k, S: s}
}

func reverse(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// slice is count characters from a start that counts from 0.
func slice(s string, from, count int64) string {
	if from < 0 {
		count += from
		from = 0
	}
	if count <= 0 {
		return ""
	}
	var b strings.Builder
	i := int64(0)
	for _, r := range s {
		if i >= from+count {
			break
		}
		if i >= from {
			b.WriteRune(r)
		}
		i++
	}
	return b.String()
}

func errLength(name string) error {
	return raise(536, 16, 1, "Invalid length parameter passed to the %s function.", name)
}

func left(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[1].N < 0 {
		return sqltype.Value{}, raise(537, 16, 2, "Invalid length parameter passed to the LEFT or SUBSTRING function.")
	}
	return withText(v[0], slice(v[0].S, 0, v[1].N)), nil
}

func right(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[1].N < 0 {
		return sqltype.Value{}, errLength("right")
	}
	n := int64(utf8.RuneCountInString(v[0].S))
	return withText(v[0], slice(v[0].S, n-min(n, v[1].N), n)), nil
}

func buildSubstring(c *compiler, args []*scalar) (*scalar, error) {
	f := func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
		if v[2].N < 0 {
			return sqltype.Value{}, raise(537, 16, 3, "Invalid length parameter passed to the LEFT or SUBSTRING function.")
		}
		if v[0].Kind.IsBinary() {
			from := min(max(v[1].N-1, 0), int64(len(v[0].S)))
			to := min(max(v[1].N-1+v[2].N, from), int64(len(v[0].S)))
			return sqltype.Value{Kind: sqltype.VarBinary, S: v[0].S[from:to]}, nil
		}
		return withText(v[0], slice(v[0].S, v[1].N-1, v[2].N)), nil
	}
	if args[0].typ.Kind.IsBinary() {
		return values(firstType, f)(c, args)
	}
	return textual(firstType, f)(c, args)
}

// buildCharIndex searches under the collation of its arguments.
func buildCharIndex(c *compiler, args []*scalar) (*scalar, error) {
	texts := asText(args[:2])
	coll, err := commonCollation(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	return values(fixed(intType), func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
		from := int64(0)
		if len(v) > 2 {
			from = max(v[2].N-1, 0)
		}
		return intValue(charIndex(v[0].S, v[1].S, from, coll)), nil
	})(c, append(texts, args[2:]...))
}

func charIndex(what, text string, from int64, coll *sqltype.Collation) int64 {
	n := int64(utf8.RuneCountInString(what))
	if n == 0 {
		return 0
	}
	runes := []rune(text)
	for i := from; i+n <= int64(len(runes)); i++ {
		part := string(runes[i : i+n])
		if part == what || (!coll.Binary && coll.Key(part+".") == coll.Key(what+".")) {
			return i + 1
		}
	}
	return 0
}

func buildReplace(c *compiler, args []*scalar) (*scalar, error) {
	texts := asText(args)
	coll, err := commonCollation(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	t := texts[0].typ
	for _, a := range texts[1:] {
		t = sqltype.Common(t, a.typ)
	}
	t.Collation = coll
	return values(func([]*scalar) sqltype.Type { return longType([]*scalar{{typ: t}}) }, func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
		if v[1].S == "" {
			return withText(v[0], v[0].S), nil
		}
		if coll.Binary || coll.CaseSensitive {
			return withText(v[0], strings.ReplaceAll(v[0].S, v[1].S, v[2].S)), nil
		}
		var b strings.Builder
		runes := []rune(v[0].S)
		n := utf8.RuneCountInString(v[1].S)
		key := coll.Key(v[1].S + ".")
		for i := 0; i < len(runes); {
			if i+n <= len(runes) && coll.Key(string(runes[i:i+n])+".") == key {
				b.WriteString(v[2].S)
				i += n
				continue
			}
			b.WriteRune(runes[i])
			i++
		}
		return withText(v[0], b.String()), nil
	})(c, texts)
}

// cutToType is a function that cuts a result of more than 8,000 bytes unless an
// argument is MAX (sql-docs, "REPLICATE", "REPLACE").
func cutToType(build func(*compiler, []*scalar) (*scalar, error)) func(*compiler, []*scalar) (*scalar, error) {
	return func(c *compiler, args []*scalar) (*scalar, error) {
		s, err := build(c, args)
		if err != nil {
			return nil, err
		}
		inner, t := s.eval, s.typ
		s.eval = func(e *env) (sqltype.Value, error) {
			v, err := inner(e)
			if err != nil {
				return v, err
			}
			return sqltype.Convert(v, t, 0)
		}
		return s, nil
	}
}

func replicate(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[1].N < 0 {
		return sqltype.Value{}, nil
	}
	if int64(len(v[0].S))*v[1].N > 64<<20 {
		return sqltype.Value{}, notModelled("REPLICATE above 64 MB")
	}
	return withText(v[0], strings.Repeat(v[0].S, int(v[1].N))), nil
}

func space(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	return varcharValue(strings.Repeat(" ", int(min(max(v[0].N, 0), 8000)))), nil
}

func stuff(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	n := int64(utf8.RuneCountInString(v[0].S))
	start, count := v[1].N, v[2].N
	if start <= 0 || start > n || count < 0 {
		return sqltype.Value{}, nil
	}
	return withText(v[0], slice(v[0].S, 0, start-1)+sqltype.Format(v[3])+slice(v[0].S, start-1+count, n)), nil
}

func char(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[0].N < 0 || v[0].N > 255 {
		return sqltype.Value{}, nil
	}
	return varcharValue(sqltype.DecodeCodePage(string([]byte{byte(v[0].N)}), sqltype.DefaultCollation)), nil
}

func nchar(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[0].N < 0 || v[0].N > 0xFFFF {
		return sqltype.Value{}, nil
	}
	return nvarcharValue(string(rune(v[0].N))), nil
}

func ascii(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	b := sqltype.EncodeCodePage(v[0].S, sqltype.DefaultCollation)
	if b == "" {
		return sqltype.Value{}, nil
	}
	return intValue(int64(b[0])), nil
}

func unicodePoint(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[0].S == "" {
		return sqltype.Value{}, nil
	}
	r, _ := utf8.DecodeRuneInString(v[0].S)
	return intValue(int64(r)), nil
}

func quoteName(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	open, closing := "[", "]"
	if len(v) > 1 {
		switch v[1].S {
		case "[", "]":
		case "'", "\"", "`":
			open, closing = v[1].S, v[1].S
		case "(", ")":
			open, closing = "(", ")"
		case "<", ">":
			open, closing = "<", ">"
		default:
			return sqltype.Value{}, nil
		}
	}
	if sqltype.UTF16Length(v[0].S) > 128 {
		return sqltype.Value{}, nil
	}
	return nvarcharValue(open + strings.ReplaceAll(v[0].S, closing, closing+closing) + closing), nil
}

func buildPatIndex(c *compiler, args []*scalar) (*scalar, error) {
	texts := asText(args)
	coll, err := commonCollation(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	return values(fixed(intType), func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
		pattern, anchored := strings.CutPrefix(v[0].S, "%")
		runes := []rune(v[1].S)
		for i := range len(runes) + 1 {
			if matchLike(string(runes[i:]), pattern, "", coll) {
				return intValue(int64(i + 1)), nil
			}
			if !anchored {
				break
			}
		}
		return intValue(0), nil
	})(c, texts)
}

func translate(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	from, to := []rune(v[1].S), []rune(v[2].S)
	if len(from) != len(to) {
		return sqltype.Value{}, raise(9828, 16, 1, "The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.")
	}
	return withText(v[0], strings.Map(func(r rune) rune {
		for i, f := range from {
			if f == r {
				return to[i]
			}
		}
		return r
	}, v[0].S)), nil
}

func str(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	length, places := int64(10), int64(0)
	if len(v) > 1 {
		length = v[1].N
	}
	if len(v) > 2 {
		places = v[2].N
	}
	s := v[0].Decimal().StringFixed(int32(places))
	if int64(len(s)) > length {
		s = strings.Repeat("*", int(length))
	}
	return varcharValue(strings.Repeat(" ", int(max(0, length-int64(len(s))))) + s), nil
}
