package diagnose_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextFitsATerminal(t *testing.T) {
	r := article(t).diagnose()
	var plain, colored strings.Builder
	if err := r.WriteText(&plain, false); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText(&colored, true); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(plain.String(), "\n") {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("colours that nobody asked for")
	}
	if !strings.Contains(colored.String(), "\x1b[31mBAD") {
		t.Error("bad is not red")
	}
	if bare := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(colored.String(), ""); bare != plain.String() {
		t.Error("colours change the text")
	}
}

func TestTextOfHostileStatements(t *testing.T) {
	var b strings.Builder
	r := canary()
	r.Sections[0].Evidence.Tables[0].Rows[0][0] = "SELECT \x1b[2J\x07 1"
	r.Sections[0].Evidence.Findings[0].Text = "a \x1b]0;title\x07 b"
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07") {
		t.Errorf("control characters reach the terminal: %q", b.String())
	}
}
