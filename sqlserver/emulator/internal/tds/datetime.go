package tds

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

const (
	ticksPerSecond = 10_000_000
	ticksPerMinute = 60 * ticksPerSecond
	ticksPerDay    = 24 * 60 * ticksPerMinute
	// daysTo1900 lie between 0001-01-01, where date begins, and 1900-01-01,
	// where datetime and smalldatetime count from.
	daysTo1900 = 693595
	// maxDay is 9999-12-31.
	maxDay = 3652058
	// datetime counts in 300ths of a second.
	unitsPerSecond = 300
	unitsPerDay    = 24 * 60 * 60 * unitsPerSecond
)

// timeBytes is how many bytes the time of day takes at a scale.
func timeBytes(scale uint8) int {
	switch {
	case scale <= 2:
		return 3
	case scale <= 4:
		return 4
	default:
		return 5
	}
}

// ticksPerUnit is how many 100 ns one unit of the last fractional digit is.
var ticksPerUnit = [8]int64{10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1}

func appendTime(b []byte, ticks int64, scale uint8) []byte {
	units := ticks / ticksPerUnit[scale&7]
	for range timeBytes(scale) {
		b = append(b, byte(units))
		units >>= 8
	}
	return b
}

func appendDate(b []byte, days int64) []byte {
	return append(b, byte(days), byte(days>>8), byte(days>>16))
}

// splitTicks is the day and the ticks within it.
func splitTicks(n int64) (days, ticks int64) { return n / ticksPerDay, n % ticksPerDay }

// datetimeUnits is a datetime as the wire has it, rounded to 1/300 s.
func datetimeUnits(n int64) (days int32, units uint32) {
	d, ticks := splitTicks(n)
	u := (ticks*unitsPerSecond + ticksPerSecond/2) / ticksPerSecond
	if u == unitsPerDay {
		d, u = d+1, 0
	}
	return int32(d - daysTo1900), uint32(u)
}

func decodeTicks(b []byte, scale uint8) (int64, bool) {
	var units int64
	for i := len(b) - 1; i >= 0; i-- {
		units = units<<8 | int64(b[i])
	}
	if scale > 7 || units >= ticksPerDay/ticksPerUnit[scale&7] {
		return 0, false
	}
	return units * ticksPerUnit[scale], true
}

func decodeDays(b []byte) (int64, bool) {
	days := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
	return days, days <= maxDay
}

// decodeDateTime reads the types date, time, datetime2 and datetimeoffset,
// whose parts come in this order: time, date, offset.
func decodeDateTime(kind sqltype.Kind, b []byte, scale uint8) (sqltype.Value, bool) {
	v := sqltype.Value{Kind: kind}
	n := 0
	if kind != sqltype.Date {
		n = timeBytes(scale)
	}
	want := n
	if kind != sqltype.Time {
		want += 3
	}
	if kind == sqltype.DateTimeOffset {
		want += 2
	}
	if len(b) != want {
		return v, false
	}
	ticks, ok := decodeTicks(b[:n], scale)
	if !ok {
		return v, false
	}
	if kind == sqltype.Time {
		v.N = ticks
		return v, true
	}
	days, ok := decodeDays(b[n:])
	switch kind {
	case sqltype.Date:
		v.N = days
	default:
		v.N = days*ticksPerDay + ticks
	}
	if kind == sqltype.DateTimeOffset {
		v.Offset = int16(uint16(b[n+3]) | uint16(b[n+4])<<8)
		ok = ok && v.Offset >= -14*60 && v.Offset <= 14*60
	}
	return v, ok
}

// decodeOldDateTime reads datetime (8 bytes) and smalldatetime (4).
func decodeOldDateTime(b []byte) (sqltype.Value, bool) {
	switch len(b) {
	case 4:
		days := int64(b[0]) | int64(b[1])<<8
		minutes := int64(b[2]) | int64(b[3])<<8
		v := sqltype.Value{Kind: sqltype.SmallDateTime, N: (days+daysTo1900)*ticksPerDay + minutes*ticksPerMinute}
		return v, minutes < 24*60
	case 8:
		days := int64(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
		units := int64(b[4]) | int64(b[5])<<8 | int64(b[6])<<16 | int64(b[7])<<24
		day := days + daysTo1900
		ticks := (units*ticksPerSecond + unitsPerSecond/2) / unitsPerSecond
		v := sqltype.Value{Kind: sqltype.DateTime, N: day*ticksPerDay + ticks}
		return v, units < unitsPerDay && day >= 0 && day <= maxDay
	}
	return sqltype.Value{}, false
}
