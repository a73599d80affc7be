package diagnose

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

// format writes a value for people: what is not known is a dash.
func format(value any, unit Unit) string {
	switch v := value.(type) {
	case nil:
		return "–"
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05")
	case int:
		return number(float64(v), unit)
	case int64:
		return number(float64(v), unit)
	case float64:
		return number(v, unit)
	default:
		return fmt.Sprint(v)
	}
}

func number(v float64, unit Unit) string {
	switch unit {
	case Bytes:
		return quantity.Bytes(v)
	case BytesPerSec:
		return quantity.Bytes(v) + "/s"
	case PerSecond:
		return quantity.Short(v) + "/s"
	case Percent:
		return quantity.Short(v) + " %"
	case Milliseconds:
		return duration(v)
	case Ratio:
		return quantity.Short(v) + " ×"
	default:
		return quantity.Short(v)
	}
}

// duration is a number of milliseconds as people say it.
func duration(ms float64) string {
	switch {
	case ms == 0:
		return "0"
	case ms < 1:
		return quantity.Short(ms*1000) + " µs"
	case ms < 1000:
		return quantity.Short(ms) + " ms"
	case ms < 120_000:
		return quantity.Short(ms/1000) + " s"
	default:
		return quantity.Age(ms / 1000)
	}
}

// counted is a number of things: 1 page, 2.5 pages.
func counted(v float64, thing string) string {
	if text := quantity.Short(v); text != "1" {
		return text + " " + thing + "s"
	}
	return "1 " + thing
}

// oneLine makes text fit a cell: blanks are folded, what is too long is cut.
func oneLine(text string, limit int) string {
	text = maintenance.Printable(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// rounded leaves a fraction six digits: nothing here is known better.
func rounded(value any) any {
	v, ok := value.(float64)
	if !ok || v == math.Trunc(v) {
		return value
	}
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return value
	}
	return v
}

// ratio is a / b, and 0 where b is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
