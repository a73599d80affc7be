package main

import (
	"strings"
	"testing"

	"azsqloutbox/sqlserver/statementtest"
)

// Strategies are compared by what the server says of statements of their names.
func TestStatementsHaveNames(t *testing.T) {
	for name, text := range statementtest.Constants(t, ".") {
		t.Run(name, func(t *testing.T) {
			text = strings.NewReplacer("{values}", "(@p1)", "%d", "1").Replace(text)
			statementtest.CheckName(t, text, statementtest.Parse(t, text))
		})
	}
}
