package atom

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Forever is the longest duration of .NET, which the service writes where there
// is no limit.
const Forever = "P10675199DT2H48M5.4775807S"

// Duration is a duration as ISO 8601 has it.
func Duration(d time.Duration) string {
	days := d / (24 * time.Hour)
	d -= days * 24 * time.Hour
	hours := d / time.Hour
	d -= hours * time.Hour
	minutes := d / time.Minute
	d -= minutes * time.Minute
	var date, clock strings.Builder
	if days > 0 {
		fmt.Fprintf(&date, "%dD", days)
	}
	if hours > 0 {
		fmt.Fprintf(&clock, "%dH", hours)
	}
	if minutes > 0 {
		fmt.Fprintf(&clock, "%dM", minutes)
	}
	if d > 0 || date.Len()+clock.Len() == 0 {
		clock.WriteString(strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S")
	}
	if clock.Len() == 0 {
		return "P" + date.String()
	}
	return "P" + date.String() + "T" + clock.String()
}

// DurationOrForever is Duration, where zero means no limit.
func DurationOrForever(d time.Duration) string {
	if d == 0 {
		return Forever
	}
	return Duration(d)
}
