package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"azsqloutbox/maintenance"
)

const (
	home      = "\x1b[H"
	clearLine = "\x1b[K" // from the cursor on
	clearRest = "\x1b[J"
)

// draw prints a status; while watching on a terminal it replaces the last one.
func (a *app) draw(s maintenance.Status, watching bool) error {
	if a.json || !watching || !isTerminal(a.out) {
		return a.result(s, s.Text)
	}
	var page bytes.Buffer
	if err := s.Text(&page); err != nil {
		return err
	}
	width, height := windowSize(a.out.(*os.File))
	_, err := io.WriteString(a.out, redraw(page.String(), width, height))
	return err
}

// redraw writes a page over the last one, line by line and not on a cleared
// screen, which would flicker. What the window has no room for is left out: it
// would push the top of the page out of sight, and the next page would begin
// somewhere else. A width or height of 0 is not known.
func redraw(page string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	rows := func(line string) int {
		if width < 1 {
			return 1
		}
		return max(1, (utf8.RuneCountInString(line)+width-1)/width)
	}
	fits, used := len(lines), 0
	for i, line := range lines {
		used += rows(line)
		// The last row is the cursor's, and the one before may be needed to say
		// that more is left.
		if height > 0 && used > height-2 && (i < len(lines)-1 || used > height-1) {
			fits = i
			break
		}
	}
	var b strings.Builder
	b.WriteString(home)
	for _, line := range lines[:fits] {
		b.WriteString(line)
		// Behind a line that fills its rows the cursor still stands on the last
		// character, and would clear it.
		if n := utf8.RuneCountInString(line); width < 1 || n == 0 || n%width > 0 {
			b.WriteString(clearLine)
		}
		b.WriteByte('\n')
	}
	if left := len(lines) - fits; left > 0 {
		fmt.Fprintf(&b, "… %d more lines%s\n", left, clearLine)
	}
	b.WriteString(clearRest)
	return b.String()
}
