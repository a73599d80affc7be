package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// count is a number as a person reads it: 45,000,000.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// size is a number of bytes in powers of 1,024, as SQL Server counts them.
func size(bytes int64) string {
	const units = "KMGTPE"
	if bytes < 1024 && bytes > -1024 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	n, unit := float64(bytes)/1024, 0
	for n >= 1024 || n <= -1024 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%.1f %cB", n, units[unit])
}

// span is a duration without zeros behind: 72h, 1m30s.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// clock is a time of the database.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

var fieldName = regexp.MustCompile(`\bfield ([A-Z][A-Za-z]+)`)

// asFlags names the flag instead of the field in an error of a Validate.
func asFlags(err error) error {
	return errors.New(fieldName.ReplaceAllStringFunc(err.Error(), func(found string) string {
		var flag strings.Builder
		flag.WriteString("-")
		for _, r := range strings.TrimPrefix(found, "field ") {
			if r >= 'A' && r <= 'Z' {
				flag.WriteString("-")
			}
			flag.WriteString(strings.ToLower(string(r)))
		}
		return flag.String()
	}))
}
