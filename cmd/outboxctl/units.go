package main

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/worker"
)

// clock is a time of the database.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

var (
	fieldNames = regexp.MustCompile(`\b(?:field|option) ([A-Z][A-Za-z]+)|\bfields ([A-Z][A-Za-z]+) and ([A-Z][A-Za-z]+)`)
	hump       = regexp.MustCompile(`([a-z])([A-Z])`)
)

// oddFlags are the flags that are not spelt as their fields.
var oddFlags = map[string]string{
	"FillFactor": "--fillfactor", "MaxDOP": "--maxdop", "FinalLockWait": "--lock-wait", "IDs": "--id",
	"AverageEventsPerSecond": "--average", "PayloadBytes": "--payload", "HeaderBytes": "--headers",
}

func flagOf(field string) string {
	return cmp.Or(oddFlags[field], "--"+strings.ToLower(hump.ReplaceAllString(field, "$1-$2")))
}

// asFlags names the flags instead of the fields in what a Validate says.
func asFlags(text string) string {
	return fieldNames.ReplaceAllStringFunc(text, func(found string) string {
		m := fieldNames.FindStringSubmatch(found)
		if m[1] != "" {
			return flagOf(m[1])
		}
		return flagOf(m[2]) + " and " + flagOf(m[3])
	})
}

// said is an error for a person: with flags, and without the tails that are for
// errors.Is.
func said(err error) string {
	text := err.Error()
	for _, mark := range []error{maintenance.ErrSetting, worker.ErrPermanent} {
		if errors.Is(err, mark) {
			text = strings.TrimSuffix(strings.Replace(text, mark.Error()+": ", "", 1), ": "+mark.Error())
		}
	}
	if exitCode(err) == exitUsage {
		text = asFlags(text)
	}
	return text
}
