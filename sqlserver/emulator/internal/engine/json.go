package engine

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonKind is the type column of OPENJSON.
type jsonKind int

const (
	jsonNull jsonKind = iota
	jsonString
	jsonNumber
	jsonBool
	jsonArray
	jsonObject
)

// maxJSONDepth is SQL Server's bound on nesting.
const maxJSONDepth = 128

// jsonValue is a value inside a JSON text; raw is its text as written.
type jsonValue struct {
	kind jsonKind
	raw  string
}

// text is the value as OPENJSON and JSON_VALUE give it: strings without their
// quotes, everything else as written.
func (v jsonValue) text() string {
	if v.kind == jsonString {
		return unquoteJSON(v.raw)
	}
	return v.raw
}

// jsonParser reads JSON without building a tree: values are pieces of the
// text.
type jsonParser struct {
	s   string
	pos int
}

func errJSON(p *jsonParser) error {
	c := "."
	if p.pos < len(p.s) {
		r, _ := utf8.DecodeRuneInString(p.s[p.pos:])
		c = string(r)
	}
	return raise(13609, 16, 4, "JSON text is not properly formatted. Unexpected character '%s' is found at position %d.", c, p.pos)
}

// parseJSON checks a whole text and is its outermost value.
func parseJSON(s string) (jsonValue, error) {
	p := &jsonParser{s: s}
	p.space()
	v, ok := p.value(0)
	p.space()
	if !ok || p.pos != len(s) {
		return v, errJSON(p)
	}
	return v, nil
}

func (p *jsonParser) space() {
	for p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *jsonParser) value(depth int) (jsonValue, bool) {
	if p.pos >= len(p.s) || depth > maxJSONDepth {
		return jsonValue{}, false
	}
	start := p.pos
	kind, ok := jsonNull, false
	switch c := p.s[p.pos]; {
	case c == '{':
		kind, ok = jsonObject, p.members(depth, nil)
	case c == '[':
		kind, ok = jsonArray, p.elements(depth, nil)
	case c == '"':
		kind, ok = jsonString, p.quoted()
	case c == '-' || (c >= '0' && c <= '9'):
		kind, ok = jsonNumber, p.number()
	case c == 't':
		kind, ok = jsonBool, p.word("true")
	case c == 'f':
		kind, ok = jsonBool, p.word("false")
	case c == 'n':
		kind, ok = jsonNull, p.word("null")
	}
	return jsonValue{kind, p.s[start:p.pos]}, ok
}

func (p *jsonParser) word(w string) bool {
	if !strings.HasPrefix(p.s[p.pos:], w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *jsonParser) number() bool {
	digits := func() bool {
		from := p.pos
		for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
			p.pos++
		}
		return p.pos > from
	}
	if p.s[p.pos] == '-' {
		p.pos++
	}
	if p.pos < len(p.s) && p.s[p.pos] == '0' {
		p.pos++
	} else if !digits() {
		return false
	}
	if p.pos < len(p.s) && p.s[p.pos] == '.' {
		p.pos++
		if !digits() {
			return false
		}
	}
	if p.pos < len(p.s) && (p.s[p.pos] == 'e' || p.s[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.s) && (p.s[p.pos] == '+' || p.s[p.pos] == '-') {
			p.pos++
		}
		return digits()
	}
	return true
}

func (p *jsonParser) quoted() bool {
	for i := p.pos + 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.pos = i + 1
			return true
		case c < ' ':
			p.pos = i
			return false
		case c == '\\':
			i++
			if i >= len(p.s) || !strings.ContainsRune(`"\/bfnrtu`, rune(p.s[i])) {
				p.pos = min(i, len(p.s))
				return false
			}
			if p.s[i] == 'u' {
				if i+4 >= len(p.s) {
					p.pos = len(p.s)
					return false
				}
				if _, err := strconv.ParseUint(p.s[i+1:i+5], 16, 16); err != nil {
					p.pos = i
					return false
				}
				i += 4
			}
		}
	}
	p.pos = len(p.s)
	return false
}

// elements walks an array; visit may be nil. It returns false for bad JSON or
// when visit does.
func (p *jsonParser) elements(depth int, visit func(jsonValue) bool) bool {
	return p.list(']', func() bool {
		v, ok := p.value(depth + 1)
		return ok && (visit == nil || visit(v))
	})
}

// members walks an object.
func (p *jsonParser) members(depth int, visit func(key string, v jsonValue) bool) bool {
	return p.list('}', func() bool {
		from := p.pos
		if p.pos >= len(p.s) || p.s[p.pos] != '"' || !p.quoted() {
			return false
		}
		key := p.s[from:p.pos]
		p.space()
		if p.pos >= len(p.s) || p.s[p.pos] != ':' {
			return false
		}
		p.pos++
		p.space()
		v, ok := p.value(depth + 1)
		return ok && (visit == nil || visit(unquoteJSON(key), v))
	})
}

// list walks what stands between brackets, with commas between the items.
func (p *jsonParser) list(closing byte, item func() bool) bool {
	p.pos++
	p.space()
	if p.pos < len(p.s) && p.s[p.pos] == closing {
		p.pos++
		return true
	}
	for {
		p.space()
		if !item() {
			return false
		}
		p.space()
		if p.pos >= len(p.s) {
			return false
		}
		switch p.s[p.pos] {
		case ',':
			p.pos++
		case closing:
			p.pos++
			return true
		default:
			return false
		}
	}
}

// each visits an array's elements (the key is the position) or an object's
// members, until visit returns false.
func (v jsonValue) each(visit func(key string, v jsonValue) bool) {
	p := &jsonParser{s: v.raw}
	switch v.kind {
	case jsonArray:
		i := 0
		p.elements(0, func(el jsonValue) bool {
			i++
			return visit(strconv.Itoa(i-1), el)
		})
	case jsonObject:
		p.members(0, visit)
	}
}

func unquoteJSON(raw string) string {
	s := raw[1 : len(raw)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r := hexRune(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) && len(s) >= i+7 {
				r = utf16.DecodeRune(r, hexRune(s[i+3:]))
				i += 6
			}
			b.WriteRune(r)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func hexRune(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 32)
	return rune(n)
}
