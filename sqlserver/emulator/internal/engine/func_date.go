package engine

import (
	"math"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"SYSUTCDATETIME":    {0, 0, clock(datetime2Type)},
	"SYSDATETIME":       {0, 0, clock(datetime2Type)},
	"SYSDATETIMEOFFSET": {0, 0, clock(sqltype.Type{Kind: sqltype.DateTimeOffset, Scale: 7})},
	"GETUTCDATE":        {0, 0, clock(datetimeType)},
	"GETDATE":           {0, 0, clock(datetimeType)},
	"DATEADD":           {3, 3, buildDateAdd},
	"DATEDIFF":          {3, 3, dateDiff(intType)},
	"DATEDIFF_BIG":      {3, 3, dateDiff(bigType)},
	"DATEPART":          {2, 2, buildDatePart},
	"YEAR":              {1, 1, partOf("year")},
	"MONTH":             {1, 1, partOf("month")},
	"DAY":               {1, 1, partOf("day")},
})

// clock is the time of the statement. The server runs in UTC, as Azure SQL
// Database does.
func clock(t sqltype.Type) func(*compiler, []*scalar) (*scalar, error) {
	return func(*compiler, []*scalar) (*scalar, error) {
		return &scalar{typ: t, notNull: true, eval: func(e *env) (sqltype.Value, error) {
			return sqltype.Convert(e.clock(), t, 0)
		}}, nil
	}
}

// dateParts maps every spelling of a date part to its name.
var dateParts = map[string]string{
	"year": "year", "yy": "year", "yyyy": "year",
	"quarter": "quarter", "qq": "quarter", "q": "quarter",
	"month": "month", "mm": "month", "m": "month",
	"dayofyear": "dayofyear", "dy": "dayofyear", "y": "dayofyear",
	"day": "day", "dd": "day", "d": "day",
	"week": "week", "wk": "week", "ww": "week",
	"weekday": "weekday", "dw": "weekday",
	"hour": "hour", "hh": "hour",
	"minute": "minute", "mi": "minute", "n": "minute",
	"second": "second", "ss": "second", "s": "second",
	"millisecond": "millisecond", "ms": "millisecond",
	"microsecond": "microsecond", "mcs": "microsecond",
	"nanosecond": "nanosecond", "ns": "nanosecond",
}

// partTicks is a part's length in ticks; 0 for nanosecond, which is finer.
var partTicks = map[string]int64{
	"week": 7 * sqltype.TicksPerDay, "day": sqltype.TicksPerDay, "dayofyear": sqltype.TicksPerDay, "weekday": sqltype.TicksPerDay,
	"hour": 3600 * sqltype.TicksPerSecond, "minute": 60 * sqltype.TicksPerSecond,
	"second": sqltype.TicksPerSecond, "millisecond": sqltype.TicksPerSecond / 1000, "microsecond": sqltype.TicksPerSecond / 1_000_000,
}

func datePart(s *scalar) (string, error) {
	v, _ := s.eval(nil)
	part, ok := dateParts[v.S]
	if !ok {
		return "", raiseBatch(155, 15, 1, "'%s' is not a recognized datepart option.", v.S)
	}
	return part, nil
}

// temporalArgument makes an argument a date: text is a datetime2.
func temporalArgument(s *scalar) *scalar {
	if s.typ.Kind.IsTemporal() {
		return s
	}
	if s.typ.Kind.IsText() {
		return convertTo(s, datetime2Type)
	}
	return convertTo(s, datetimeType)
}

func buildDateAdd(c *compiler, args []*scalar) (*scalar, error) {
	part, err := datePart(args[0])
	if err != nil {
		return nil, err
	}
	// Text gives datetime, other types stay (sql-docs, "DATEADD").
	when := args[2]
	if !when.typ.Kind.IsTemporal() {
		when = convertTo(when, datetimeType)
	}
	t := when.typ
	if err := hasPart(part, "dateadd", t); err != nil {
		return nil, err
	}
	return values(fixed(t), func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
		return dateAdd(part, v[0].N, v[1], t)
	})(c, []*scalar{convertTo(args[1], bigType), when})
}

// hasPart: a date has no hours, a time no days, a datetime nothing finer than
// milliseconds to add (sql-docs, "DATEADD", "DATEPART").
func hasPart(part, function string, t sqltype.Type) error {
	_, clock := map[string]bool{"hour": true, "minute": true, "second": true, "millisecond": true, "microsecond": true, "nanosecond": true}[part]
	fine := part == "microsecond" || part == "nanosecond"
	if t.Kind == sqltype.Date && clock || t.Kind == sqltype.Time && !clock || fine && function == "dateadd" && isOldDate(t.Kind) {
		return raiseBatch(9810, 16, 1, "The datepart %s is not supported by date function %s for data type %s.", part, function, t.Name())
	}
	return nil
}

func dateAdd(part string, n int64, v sqltype.Value, t sqltype.Type) (sqltype.Value, error) {
	day := v.Kind == sqltype.Date
	if day {
		v.N *= sqltype.TicksPerDay
	}
	switch part {
	case "year", "quarter", "month":
		months := n
		switch part {
		case "year":
			months *= 12
		case "quarter":
			months *= 3
		}
		if n < -maxYears*12 || n > maxYears*12 || months < -maxYears*12 || months > maxYears*12 {
			return sqltype.Value{}, errDateOverflow(t)
		}
		v.N = addMonths(v.N, months)
	case "nanosecond":
		v.N += n / 100
	default:
		if unit := partTicks[part]; n > math.MaxInt64/2/unit || n < math.MinInt64/2/unit {
			return sqltype.Value{}, errDateOverflow(t)
		}
		v.N += n * partTicks[part]
	}
	if v.Kind == sqltype.Time {
		v.N = ((v.N % sqltype.TicksPerDay) + sqltype.TicksPerDay) % sqltype.TicksPerDay
		return v, nil
	}
	if v.N < 0 || v.N >= 3652059*sqltype.TicksPerDay {
		return sqltype.Value{}, errDateOverflow(t)
	}
	if day {
		v.N /= sqltype.TicksPerDay
	}
	return sqltype.Convert(v, t, 0)
}

// maxYears is what no date survives having added.
const maxYears = 10_000

func errDateOverflow(t sqltype.Type) error {
	return raise(517, 16, 1, "Adding a value to a '%s' column caused an overflow.", t.Name())
}

// addMonths keeps the day, or takes the month's last.
func addMonths(ticks, months int64) int64 {
	t := sqltype.TimeOf(ticks)
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, int(months), 0)
	last := first.AddDate(0, 1, -1).Day()
	day := time.Date(first.Year(), first.Month(), min(t.Day(), last), 0, 0, 0, 0, time.UTC)
	return sqltype.TicksOf(day) + ticks%sqltype.TicksPerDay
}

func dateDiff(t sqltype.Type) func(*compiler, []*scalar) (*scalar, error) {
	return func(c *compiler, args []*scalar) (*scalar, error) {
		part, err := datePart(args[0])
		if err != nil {
			return nil, err
		}
		return values(fixed(t), func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
			n := boundaries(part, ticksOf(v[0]), ticksOf(v[1]))
			if t.Kind == sqltype.Int && (n > 1<<31-1 || n < -1<<31) {
				return sqltype.Value{}, raise(535, 16, 0, "The datediff function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use datediff with a less precise datepart.")
			}
			return sqltype.Value{Kind: t.Kind, N: n}, nil
		})(c, []*scalar{temporalArgument(args[1]), temporalArgument(args[2])})
	}
}

// ticksOf is a date or time as ticks since 0001-01-01.
func ticksOf(v sqltype.Value) int64 {
	switch v.Kind {
	case sqltype.Date:
		return v.N * sqltype.TicksPerDay
	case sqltype.Time:
		return 693595*sqltype.TicksPerDay + v.N
	}
	return v.N
}

// boundaries counts the boundaries of the part between two times.
func boundaries(part string, a, b int64) int64 {
	ta, tb := sqltype.TimeOf(a), sqltype.TimeOf(b)
	months := func(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }
	switch part {
	case "year":
		return int64(tb.Year() - ta.Year())
	case "quarter":
		return months(tb)/3 - months(ta)/3
	case "month":
		return months(tb) - months(ta)
	case "week": // weeks begin on Sunday, whatever DATEFIRST says
		week := func(n int64) int64 { return (n/sqltype.TicksPerDay + 1) / 7 }
		return week(b) - week(a)
	case "nanosecond":
		return (b - a) * 100
	}
	unit := partTicks[part]
	return b/unit - a/unit
}

func buildDatePart(c *compiler, args []*scalar) (*scalar, error) {
	part, err := datePart(args[0])
	if err != nil {
		return nil, err
	}
	if err := hasPart(part, "datepart", temporalArgument(args[1]).typ); err != nil {
		return nil, err
	}
	return partOf(part)(c, args[1:])
}

func partOf(part string) func(*compiler, []*scalar) (*scalar, error) {
	return func(c *compiler, args []*scalar) (*scalar, error) {
		return values(fixed(intType), func(_ *env, v []sqltype.Value) (sqltype.Value, error) {
			return intValue(partValue(part, ticksOf(v[0])+int64(v[0].Offset)*60*sqltype.TicksPerSecond)), nil
		})(c, []*scalar{temporalArgument(args[0])})
	}
}

func partValue(part string, ticks int64) int64 {
	t := sqltype.TimeOf(ticks)
	switch part {
	case "year":
		return int64(t.Year())
	case "quarter":
		return int64(t.Month()-1)/3 + 1
	case "month":
		return int64(t.Month())
	case "dayofyear":
		return int64(t.YearDay())
	case "day":
		return int64(t.Day())
	case "week":
		jan1 := time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
		return int64((t.YearDay()-1+int(jan1.Weekday()))/7 + 1)
	case "weekday":
		return int64(t.Weekday()) + 1
	case "hour":
		return int64(t.Hour())
	case "minute":
		return int64(t.Minute())
	case "second":
		return int64(t.Second())
	case "millisecond":
		return int64(t.Nanosecond() / 1_000_000)
	case "microsecond":
		return int64(t.Nanosecond() / 1000)
	}
	return int64(t.Nanosecond())
}
