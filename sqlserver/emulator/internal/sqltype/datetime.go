package sqltype

import (
	"strconv"
	"strings"
	"time"
)

// Ticks are 100 ns, SQL Server's finest.
const (
	TicksPerSecond = 10_000_000
	TicksPerDay    = 24 * 60 * 60 * TicksPerSecond
	ticksPerMinute = 60 * TicksPerSecond
)

// days1900 is 1900-01-01, where datetime and smalldatetime count from, in days
// since 0001-01-01.
const days1900 = 693595

// unixDays is 1970-01-01 in days since 0001-01-01.
const unixDays = 719162

// TicksOf is a time as ticks since 0001-01-01.
func TicksOf(t time.Time) int64 {
	t = t.UTC()
	return (t.Unix()+unixDays*86400)*TicksPerSecond + int64(t.Nanosecond()/100)
}

// TimeOf is the time of ticks since 0001-01-01.
func TimeOf(ticks int64) time.Time {
	sec := ticks / TicksPerSecond
	return time.Unix(sec-unixDays*86400, (ticks%TicksPerSecond)*100).UTC()
}

// Now is the clock as datetime2(7).
func Now() Value { return Value{Kind: DateTime2, N: TicksOf(time.Now())} }

// roundTicks rounds to a number of fractional digits, half up.
func roundTicks(n int64, scale uint8) int64 {
	if scale >= 7 {
		return n
	}
	unit := pow10[7-scale]
	return (n + unit/2) / unit * unit
}

// roundDateTime rounds to datetime's 1/300 s.
func roundDateTime(n int64) int64 {
	day, rest := n/TicksPerDay, n%TicksPerDay
	thirds := (rest*300 + TicksPerSecond/2) / TicksPerSecond
	return day*TicksPerDay + DateTimeTicks(thirds)
}

// DateTimeTicks is the ticks of a number of 1/300 s, as datetime shows them:
// .000, .003 or .007.
func DateTimeTicks(thirds int64) int64 {
	ms := (thirds*10 + 1) / 3 // 0, 3, 7, 10, …
	return ms * (TicksPerSecond / 1000)
}

// convertTemporal brings a date or time to another type; ticks is since
// 0001-01-01, UTC for an offset type.
func convertTemporal(v Value, to Type) (Value, error) {
	var local int64 // local wall clock
	switch v.Kind {
	case Date:
		local = v.N * TicksPerDay
	case Time:
		local = days1900*TicksPerDay + v.N
	case DateTimeOffset:
		local = v.N + int64(v.Offset)*ticksPerMinute
	default:
		local = v.N
	}
	switch to.Kind {
	case Date:
		if v.Kind == Time {
			return Value{}, errNotAllowed(v.Kind, to)
		}
		return Value{Kind: Date, N: local / TicksPerDay}, nil
	case Time:
		n := roundTicks(local%TicksPerDay, to.Scale)
		return Value{Kind: Time, N: n % TicksPerDay, Scale: to.Scale}, nil
	case DateTime2:
		return Value{Kind: DateTime2, N: roundTicks(local, to.Scale), Scale: to.Scale}, nil
	case DateTimeOffset:
		out := Value{Kind: DateTimeOffset, N: local, Scale: to.Scale}
		if v.Kind == DateTimeOffset {
			out.N, out.Offset = v.N, v.Offset
		}
		out.N = roundTicks(out.N, to.Scale)
		return out, nil
	case DateTime:
		n := roundDateTime(local)
		if n < 639905*TicksPerDay { // 1753-01-01
			return Value{}, errDateRange(Type{Kind: v.Kind}, to)
		}
		return Value{Kind: DateTime, N: n}, nil
	case SmallDateTime:
		n := (local + ticksPerMinute/2) / ticksPerMinute * ticksPerMinute
		if n < days1900*TicksPerDay || n >= (days1900+65536)*TicksPerDay {
			return Value{}, errDateRange(Type{Kind: v.Kind}, to)
		}
		return Value{Kind: SmallDateTime, N: n}, nil
	}
	return Value{}, errNotAllowed(v.Kind, to)
}

// parseTemporal reads the ISO forms, which mean the same whatever the
// session's language: date, 'T' or space, time, offset.
func parseTemporal(s string) (ticks int64, offset int16, hasOffset, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return days1900 * TicksPerDay, 0, false, true
	}
	datePart, timePart := s, ""
	if i := strings.IndexAny(s, "T "); i >= 0 {
		datePart, timePart = s[:i], strings.TrimSpace(s[i+1:])
	} else if strings.Contains(s, ":") {
		datePart, timePart = "", s
	}
	days := int64(days1900)
	if datePart != "" {
		layout := "2006-01-02"
		switch {
		case len(datePart) == 8 && !strings.Contains(datePart, "-"):
			layout = "20060102"
		case strings.Contains(datePart, "/"):
			layout = "2006/01/02"
		}
		d, err := time.Parse(layout, datePart)
		if err != nil {
			return 0, 0, false, false
		}
		days = TicksOf(d) / TicksPerDay
	}
	if timePart == "" {
		return days * TicksPerDay, 0, false, true
	}
	if z, found := strings.CutSuffix(timePart, "Z"); found {
		timePart, hasOffset = z, true
	} else if i := strings.LastIndexAny(timePart, "+-"); i > 0 {
		o, valid := parseOffset(timePart[i:])
		if !valid {
			return 0, 0, false, false
		}
		timePart, offset, hasOffset = strings.TrimSpace(timePart[:i]), o, true
	}
	n, valid := parseClock(timePart)
	if !valid {
		return 0, 0, false, false
	}
	ticks = days*TicksPerDay + n - int64(offset)*ticksPerMinute
	return ticks, offset, hasOffset, true
}

func parseOffset(s string) (int16, bool) {
	if len(s) != 6 || s[3] != ':' {
		return 0, false
	}
	h, err1 := strconv.Atoi(s[1:3])
	m, err2 := strconv.Atoi(s[4:6])
	if err1 != nil || err2 != nil || h > 14 || m > 59 {
		return 0, false
	}
	o := h*60 + m
	if s[0] == '-' {
		o = -o
	}
	return int16(o), true
}

func parseClock(s string) (int64, bool) {
	s, frac, hasFrac := strings.Cut(s, ".")
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 || (hasFrac && len(parts) < 3) || len(frac) > 7 {
		return 0, false
	}
	var n [3]int64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return 0, false
		}
		n[i] = int64(v)
	}
	if n[0] > 23 || n[1] > 59 || n[2] > 59 {
		return 0, false
	}
	ticks := (n[0]*3600 + n[1]*60 + n[2]) * TicksPerSecond
	if hasFrac {
		if frac == "" {
			return 0, false
		}
		f, err := strconv.ParseUint((frac + "0000000")[:7], 10, 32)
		if err != nil {
			return 0, false
		}
		ticks += int64(f)
	}
	return ticks, true
}
