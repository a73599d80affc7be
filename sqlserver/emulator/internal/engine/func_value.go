package engine

import (
	"crypto/rand"
	"math"

	"github.com/shopspring/decimal"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"ISNULL":       {2, 2, buildIsNull},
	"NEWID":        {0, 0, buildNewID},
	"ABS":          {1, 1, calculating("abs", values(firstType, abs))},
	"SIGN":         {1, 1, calculating("sign", values(firstType, signOf))},
	"CEILING":      {1, 1, calculating("ceiling", values(wholeType, ceiling))},
	"FLOOR":        {1, 1, calculating("floor", values(wholeType, floor))},
	"ROUND":        {2, 3, calculating("round", counting(1, 2, values(firstType, round)))},
	"POWER":        {2, 2, calculating("power", values(firstType, power))},
	"SQRT":         {1, 1, calculating("sqrt", values(fixed(floatType), sqrt))},
	"GREATEST":     {1, 254, pickOne(1)},
	"LEAST":        {1, 254, pickOne(-1)},
	"CHECKSUM":     {1, 254, buildChecksum},
	"RAND":         {0, 1, buildRand},
	"ISNUMERIC":    {1, 1, values(fixed(intType), isNumeric)},
	"ISDATE":       {1, 1, values(fixed(intType), isDate)},
	"ROWCOUNT_BIG": {0, 0, func(c *compiler, _ []*scalar) (*scalar, error) { return c.globalVariable("ROWCOUNT_BIG") }},
	"CHOOSE":       {2, 254, buildChoose},
})

// buildIsNull: the result has the first argument's type.
func buildIsNull(_ *compiler, args []*scalar) (*scalar, error) {
	a, b := args[0], args[1]
	t := a.typ
	if t.Kind == sqltype.Null {
		t = b.typ
	}
	fb := convertTo(b, t).eval
	out := derive(t, func(e *env) (sqltype.Value, error) {
		v, err := a.eval(e)
		if err != nil || !v.IsNull() {
			return v, err
		}
		return fb(e)
	}, a, b)
	out.notNull = a.notNull || b.notNull
	return out, nil
}

func buildNewID(*compiler, []*scalar) (*scalar, error) {
	return &scalar{typ: guidType, notNull: true, eval: func(*env) (sqltype.Value, error) {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		b[6] = b[6]&0x0f | 0x40
		b[8] = b[8]&0x3f | 0x80
		return sqltype.Value{Kind: sqltype.UniqueIdentifier, S: string(b[:])}, nil
	}}, nil
}

func abs(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	x := v[0]
	switch {
	case x.Kind.IsApproximate():
		return sqltype.FloatValue(x.Kind, math.Abs(x.Float())), nil
	case x.Big:
		x.S = x.Decimal().Abs().String()
	case x.N < 0:
		x.N = -x.N
	}
	return x, nil
}

func signOf(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	t := sqltype.Type{Kind: v[0].Kind, Precision: 38, Scale: v[0].Scale}
	return sqltype.Convert(intValue(int64(v[0].Decimal().Sign())), t, 0)
}

func wholeType(args []*scalar) sqltype.Type {
	t := args[0].typ
	if t.Kind == sqltype.Decimal {
		t.Scale = 0
	}
	return t
}

func ceiling(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	return whole(v[0], math.Ceil, decimal.Decimal.Ceil)
}

func floor(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	return whole(v[0], math.Floor, decimal.Decimal.Floor)
}

func whole(v sqltype.Value, f func(float64) float64, d func(decimal.Decimal) decimal.Decimal) (sqltype.Value, error) {
	switch {
	case v.Kind.IsApproximate():
		return sqltype.FloatValue(v.Kind, f(v.Float())), nil
	case v.Kind == sqltype.Decimal:
		return sqltype.NewDecimal(d(v.Decimal()), sqltype.Type{Kind: sqltype.Decimal, Precision: 38})
	}
	return v, nil
}

func round(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	places := int32(v[1].N)
	d := v[0].Decimal()
	if len(v) > 2 && v[2].N != 0 {
		d = d.Shift(places).Truncate(0).Shift(-places)
	} else {
		d = d.Round(places)
	}
	if v[0].Kind.IsApproximate() {
		f, _ := d.Float64()
		return sqltype.FloatValue(v[0].Kind, f), nil
	}
	t := sqltype.Type{Kind: v[0].Kind, Precision: 38, Scale: v[0].Scale}
	wide, err := sqltype.NewDecimal(d, sqltype.Type{Kind: sqltype.Decimal, Precision: 38, Scale: v[0].Scale})
	if err != nil {
		return wide, err
	}
	return sqltype.Convert(wide, t, 0)
}

func power(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	f := math.Pow(v[0].Float(), v[1].Float())
	return sqltype.Convert(sqltype.FloatValue(sqltype.Float, f), sqltype.Type{Kind: v[0].Kind, Precision: 38, Scale: v[0].Scale}, 0)
}

func sqrt(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	f := v[0].Float()
	if f < 0 {
		return sqltype.Value{}, raise(3623, 16, 1, "An invalid floating point operation occurred.")
	}
	return sqltype.FloatValue(sqltype.Float, math.Sqrt(f)), nil
}

// pickOne is GREATEST (1) or LEAST (-1); NULLs are passed over.
func pickOne(want int) func(*compiler, []*scalar) (*scalar, error) {
	return func(_ *compiler, args []*scalar) (*scalar, error) {
		t := args[0].typ
		for _, a := range args[1:] {
			t = sqltype.Common(t, a.typ)
		}
		all := make([]*scalar, len(args))
		for i, a := range args {
			all[i] = convertTo(a, t)
		}
		compare := sqltype.Comparer(t)
		return derive(t, func(e *env) (sqltype.Value, error) {
			var best sqltype.Value
			for _, a := range all {
				v, err := a.eval(e)
				if err != nil {
					return v, err
				}
				if !v.IsNull() && (best.IsNull() || compare(v, best)*want > 0) {
					best = v
				}
			}
			return best, nil
		}, all...), nil
	}
}

// buildChecksum is a checksum, but not SQL Server's own.
func buildChecksum(*compiler, []*scalar) (*scalar, error) {
	return nil, notModelled("CHECKSUM")
}

func buildRand(*compiler, []*scalar) (*scalar, error) {
	return &scalar{typ: floatType, notNull: true, eval: func(*env) (sqltype.Value, error) {
		var b [8]byte
		_, _ = rand.Read(b[:])
		n := uint64(0)
		for _, x := range b {
			n = n<<8 | uint64(x)
		}
		return sqltype.FloatValue(sqltype.Float, float64(n>>11)/(1<<53)), nil
	}}, nil
}

func isNumeric(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if v[0].Kind.IsNumeric() {
		return intValue(1), nil
	}
	_, err := sqltype.Convert(v[0], floatType, 0)
	if err != nil || v[0].S == "" {
		return intValue(0), nil
	}
	return intValue(1), nil
}

func isDate(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if _, err := sqltype.Convert(v[0], datetimeType, 0); err != nil || v[0].S == "" {
		return intValue(0), nil
	}
	return intValue(1), nil
}

func buildChoose(_ *compiler, args []*scalar) (*scalar, error) {
	index := convertTo(args[0], intType)
	var tests []*predicate
	for i := range args[1:] {
		want := int64(i + 1)
		tests = append(tests, derivePredicate(func(e *env) (tri, error) {
			v, err := index.eval(e)
			return truth(!v.IsNull() && v.N == want), err
		}, index))
	}
	return branches(tests, args[1:], nil)
}
