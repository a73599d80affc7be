package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// screen is as much of a terminal as redraw uses, and the terminal's driver,
// which makes CR LF of LF. After the last character of a row the cursor stays on
// it until another one comes, as xterm has it.
type screen struct {
	width, height int
	row, col      int
	full          bool // the next character begins a row
	cells         [][]rune
	sequence      string // an escape sequence that has begun
	scrolled      int
	drawn         int // pages
}

func newScreen(width, height int) *screen {
	s := &screen{width: width, height: height}
	for range height {
		s.cells = append(s.cells, s.blank())
	}
	return s
}

func (s *screen) blank() []rune { return []rune(strings.Repeat(" ", s.width)) }

func (s *screen) write(text string) {
	for _, r := range text {
		switch {
		case s.sequence != "" || r == '\x1b':
			s.sequence += string(r)
			s.escape()
		case r == '\r':
			s.col, s.full = 0, false
		case r == '\n':
			s.line()
		default:
			if s.full {
				s.line()
			}
			s.cells[s.row][s.col] = r
			s.full = s.col == s.width-1
			s.col = min(s.col+1, s.width-1)
		}
	}
}

func (s *screen) line() {
	s.col, s.full = 0, false
	if s.row++; s.row == s.height {
		s.row--
		s.scrolled++
		s.cells = append(s.cells[1:], s.blank())
	}
}

func (s *screen) escape() {
	switch s.sequence {
	case home:
		s.row, s.col, s.full = 0, 0, false
		s.drawn++
	case clearLine:
		copy(s.cells[s.row][s.col:], s.blank())
	case clearRest:
		copy(s.cells[s.row][s.col:], s.blank())
		for i := s.row + 1; i < s.height; i++ {
			s.cells[i] = s.blank()
		}
	default:
		return
	}
	s.sequence = ""
}

func (s *screen) text() string {
	var rows []string
	for _, row := range s.cells {
		rows = append(rows, strings.TrimRight(string(row), " "))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// However long and wide the page before was, nothing of it is left, and the top
// of the page is at the top of the window.
func TestRedraw(t *testing.T) {
	page := func(lines, width int) string {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintln(&b, strings.Repeat(string(rune('a'+(i+width)%26)), width-i%3))
		}
		return b.String()
	}
	const width, height = 20, 10
	pages := []string{page(3, 10), page(9, 19), page(8, 22), page(30, 12), page(10, 5), page(4, 20), page(5, 45), page(1, 3), page(9, 20), page(8, 3), page(2, 250)}
	for _, before := range pages {
		for _, now := range pages {
			s, fresh := newScreen(width, height), newScreen(width, height)
			s.write(redraw(before, width, height))
			s.write("outboxctl: an error that came between\n")
			s.write(redraw(now, width, height))
			fresh.write(redraw(now, width, height))
			if diff := cmp.Diff(fresh.text(), s.text()); diff != "" || fresh.scrolled > 0 {
				t.Fatalf("after\n%s\nthe page\n%s\nis drawn differently, or scrolls (%d; -alone +after):\n%s", before, now, fresh.scrolled, diff)
			}
		}
	}
	for page, want := range map[string]string{
		"a\nb\n":                  "a\nb",
		strings.Repeat("a\n", 9):  strings.TrimSuffix(strings.Repeat("a\n", 9), "\n"),
		strings.Repeat("a\n", 10): strings.Repeat("a\n", 8) + "… 2 more lines",
		strings.Repeat("abcde\n", 4) + strings.Repeat("0123456789", 11) + "\n": strings.Repeat("abcde\n", 4) + "… 1 more lines",
		strings.Repeat("0123456789", 4) + "\nx\n":                              "01234567890123456789\n01234567890123456789\nx",
	} {
		s := newScreen(width, height)
		s.write(redraw(page, width, height))
		if diff := cmp.Diff(want, s.text()); diff != "" {
			t.Errorf("of\n%s\n(-want +got):\n%s", page, diff)
		}
	}
	if got, want := redraw("a\n", 0, 0), home+"a"+clearLine+"\n"+clearRest; got != want {
		t.Errorf("in a window of unknown size %q is written, want %q", got, want)
	}
}
