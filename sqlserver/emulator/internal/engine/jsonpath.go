package engine

import (
	"strconv"
	"strings"
)

// jsonPath is a parsed path: lax unless strict, then steps from the root.
type jsonPath struct {
	strict bool
	steps  []jsonStep
}

type jsonStep struct {
	key   string
	index int // -1 for a member
}

func errJSONPath(path string, pos int) error {
	c := "."
	if pos < len(path) {
		c = path[pos : pos+1]
	}
	return raise(13607, 16, 4, "JSON path is not properly formatted. Unexpected character '%s' is found at position %d.", c, pos)
}

func parseJSONPath(path string) (jsonPath, error) {
	var p jsonPath
	s := strings.TrimLeft(path, " ")
	if rest, ok := cutFold(s, "strict "); ok {
		p.strict, s = true, strings.TrimLeft(rest, " ")
	} else if rest, ok := cutFold(s, "lax "); ok {
		s = strings.TrimLeft(rest, " ")
	}
	at := func(rest string) int { return len(path) - len(rest) }
	if s == "" || s[0] != '$' {
		return p, errJSONPath(path, at(s))
	}
	s = s[1:]
	for s != "" {
		switch s[0] {
		case '.':
			s = s[1:]
			if s == "" {
				return p, errJSONPath(path, len(path))
			}
			var key string
			if s[0] == '"' {
				q := &jsonParser{s: s}
				if !q.quoted() {
					return p, errJSONPath(path, at(s))
				}
				key, s = unquoteJSON(s[:q.pos]), s[q.pos:]
			} else {
				end := strings.IndexAny(s, ".[ ")
				if end < 0 {
					end = len(s)
				}
				if end == 0 {
					return p, errJSONPath(path, at(s))
				}
				key, s = s[:end], s[end:]
			}
			p.steps = append(p.steps, jsonStep{key, -1})
		case '[':
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return p, errJSONPath(path, len(path))
			}
			n, err := strconv.Atoi(strings.TrimSpace(s[1:end]))
			if err != nil || n < 0 {
				return p, errJSONPath(path, at(s)+1)
			}
			p.steps = append(p.steps, jsonStep{"", n})
			s = s[end+1:]
		default:
			return p, errJSONPath(path, at(s))
		}
	}
	return p, nil
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// find follows the path. In strict mode a missing step is error 13608.
func (p jsonPath) find(v jsonValue) (jsonValue, bool, error) {
	for _, st := range p.steps {
		found := false
		var next jsonValue
		switch {
		case st.index >= 0 && v.kind == jsonArray:
			i := 0
			v.each(func(_ string, el jsonValue) bool {
				if i == st.index {
					next, found = el, true
				}
				i++
				return !found
			})
		case st.index < 0 && v.kind == jsonObject:
			v.each(func(key string, el jsonValue) bool {
				if key == st.key {
					next, found = el, true
				}
				return !found
			})
		}
		if !found {
			if p.strict {
				return v, false, raise(13608, 16, 5, "Property cannot be found on the specified JSON path.")
			}
			return v, false, nil
		}
		v = next
	}
	return v, true, nil
}
