package emulator

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

const (
	// nameMark stands in the comment that names a statement, behind its opening.
	nameMark = " outbox:"
	// The log is bounded: a long run must not collect its own history.
	maxStatements  = 1000
	keptTexts      = 8
	maxTextBytes   = 16 << 10
	maxNameBytes   = 128
	nameSearchArea = 8 << 10
)

// Statement is what the log knows of the statements of one name.
type Statement struct {
	// Name is what the first comment of the form "/* outbox:Name */" says, or
	// a line "-- outbox:Name".
	Name string
	// Count is how often it was sent, whatever became of it.
	Count int
	// Texts are the last few texts, oldest first, cut to 16 KB.
	Texts []string
}

// Statements returns the named statements that clients have sent, by name. Of
// at most 1,000 names the log keeps count.
func (s *Server) Statements() []Statement { return s.log.list() }

// StatementCount is the Count of one name.
func (s *Server) StatementCount(name string) int {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if st := s.log.byName[name]; st != nil {
		return st.Count
	}
	return 0
}

type statementLog struct {
	mu     sync.Mutex
	byName map[string]*Statement
}

// add logs a text, if it has a name, and returns the name.
func (l *statementLog) add(text string) string {
	name := nameOf(text)
	if name == "" {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string]*Statement{}
	}
	st := l.byName[name]
	if st == nil {
		if len(l.byName) == maxStatements {
			return name
		}
		st = &Statement{Name: strings.Clone(name)}
		l.byName[st.Name] = st
	}
	st.Count++
	if len(text) > maxTextBytes {
		text = strings.ToValidUTF8(text[:maxTextBytes], "")
	}
	// Most statements are the same text again and again: keep it once.
	if n := len(st.Texts); n == 0 || st.Texts[n-1] != text {
		if n == keptTexts {
			st.Texts = slices.Delete(st.Texts, 0, 1)
		}
		st.Texts = append(st.Texts, text)
	}
	return name
}

func (l *statementLog) list() []Statement {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Statement, 0, len(l.byName))
	for _, st := range l.byName {
		copied := *st
		copied.Texts = slices.Clone(st.Texts)
		all = append(all, copied)
	}
	slices.SortFunc(all, func(a, b Statement) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// nameOf finds the comment that names the statement: one in the line, which
// stands after a keyword, or a line of its own. It is looked for near the
// beginning only.
func nameOf(text string) string {
	text = text[:min(len(text), nameSearchArea)]
	for from := 0; ; {
		at := strings.Index(text[from:], nameMark)
		if at < 0 {
			return ""
		}
		at += from
		from = at + len(nameMark)
		end := "\n"
		before, inLine := strings.CutSuffix(text[:at], "/*")
		if inLine {
			end = "*/"
			if before != "" && !strings.ContainsAny(before[len(before)-1:], " \t\r\n") {
				continue // perhaps in a string
			}
		} else {
			var ok bool
			before, ok = strings.CutSuffix(before, "--")
			if !ok || strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) != "" {
				continue // in the middle of a line, so perhaps of a string
			}
		}
		name, _, closed := strings.Cut(text[from:], end)
		if inLine && !closed {
			continue
		}
		name = strings.TrimSpace(name)
		return name[:min(len(name), maxNameBytes)]
	}
}
