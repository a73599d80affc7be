package servicebus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Headers that are not passed on as application properties but set a field of
// the message. All other names become application properties.
const (
	// HeaderCorrelationID sets the correlation id: a string.
	HeaderCorrelationID = "sb-correlation-id"
	// HeaderTTL sets the time to live, above the route's: a number of seconds,
	// or a duration such as "90s" or "24h". At most MaxTTL.
	HeaderTTL = "sb-ttl"
	// HeaderScheduledTime sets when the message becomes visible: a string in RFC
	// 3339 such as "2030-01-31T08:00:00Z". A time that is past means at once.
	HeaderScheduledTime = "sb-scheduled-time"
)

// HeaderTraceparent is the W3C trace context of the transaction that wrote the
// event. It becomes the application property of the same name, and the
// Diagnostic-Id property as well.
const HeaderTraceparent = "traceparent"

// eachHeader calls put for every member of headers, a JSON object, except those
// that are null; the last of several members of one name wins, as put sees them
// in order. Values arrive as string, int64, float64 or bool, the types that an
// application property can have. A whole number beyond 64 bits is an error
// rather than a double: a double would silently be another number.
func eachHeader(headers []byte, put func(name string, value any) error) error {
	if len(headers) == 0 {
		return nil
	}
	// One strict pass by the standard library, without an allocation; after it
	// the walk below needs no error handling of its own.
	if !json.Valid(headers) {
		return fmt.Errorf("headers are not valid JSON: %w", syntaxError(headers))
	}
	if !utf8.Valid(headers) {
		return errors.New("headers are not valid UTF-8")
	}
	if hasLoneSurrogate(headers) {
		return errors.New(`headers hold half of a surrogate pair (\ud800 to \udfff alone), which is no character`)
	}
	// One copy, of which names and values are pieces.
	w := jsonWalk{rest: string(headers)}
	switch w.next() {
	case '{':
	case 'n':
		return nil // the JSON null is no headers, as the SQL NULL is
	default:
		return errors.New("headers are JSON, but not an object")
	}
	w.skip(1)
	for w.next() != '}' {
		if w.next() == ',' {
			w.skip(1)
		}
		name := w.text()
		w.next()
		w.skip(1) // the colon
		value, err := w.value()
		if err != nil {
			return fmt.Errorf("header %q: %w", name, err)
		}
		if value == nil {
			continue
		}
		if err := put(name, value); err != nil {
			return err
		}
	}
	return nil
}

// hasLoneSurrogate looks for an escape that names half a character. Valid JSON
// may hold one, and decoders quietly make a replacement character of it.
func hasLoneSurrogate(text []byte) bool {
	high := false // the escape before was a first half
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		unit := uint64(0)
		if text[i] == 'u' {
			unit, _ = strconv.ParseUint(string(text[i+1:i+5]), 16, 16) // JSON has been validated
			i += 4
		}
		low := unit >= 0xdc00 && unit <= 0xdfff
		if high != low {
			return true
		}
		high = unit >= 0xd800 && unit <= 0xdbff
	}
	return high
}

// jsonWalk reads a text that is known to be valid JSON.
type jsonWalk struct{ rest string }

// next skips white space and returns the byte after it.
func (w *jsonWalk) next() byte {
	for w.rest[0] == ' ' || w.rest[0] == '\t' || w.rest[0] == '\n' || w.rest[0] == '\r' {
		w.rest = w.rest[1:]
	}
	return w.rest[0]
}

func (w *jsonWalk) skip(n int) { w.rest = w.rest[n:] }

// text reads a string.
func (w *jsonWalk) text() string {
	w.next()
	end, escaped := 1, false
	for w.rest[end] != '"' {
		if w.rest[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	quoted := w.rest[:end+1]
	w.skip(end + 1)
	if !escaped {
		return quoted[1:end]
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // it is a valid string
	return s
}

func (w *jsonWalk) value() (any, error) {
	switch w.next() {
	case '"':
		return w.text(), nil
	case 't':
		w.skip(len("true"))
		return true, nil
	case 'f':
		w.skip(len("false"))
		return false, nil
	case 'n':
		w.skip(len("null"))
		return nil, nil
	case '{', '[':
		return nil, errors.New("is nested; a header is a string, a number, true, false or null")
	default:
		return w.number()
	}
}

func (w *jsonWalk) number() (any, error) {
	end := strings.IndexAny(w.rest, ",} \t\r\n")
	digits := w.rest[:end]
	w.skip(end)
	if whole, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return whole, nil
	}
	if !strings.ContainsAny(digits, ".eE") {
		return nil, fmt.Errorf("%s is a whole number beyond 64 bits; write it as a string", digits)
	}
	double, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is beyond a double; write it as a string", digits)
	}
	return double, nil
}

// syntaxError says where and why a text is no JSON.
func syntaxError(text []byte) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(text, new(any)); errors.As(err, &syntax) {
		return fmt.Errorf("%w (byte %d)", syntax, syntax.Offset)
	}
	return errors.New("unreadable")
}

// headerTTL reads the value of HeaderTTL.
func headerTTL(value any) (time.Duration, error) {
	wrong := fmt.Errorf("header %q: %v is no time to live: write a number of seconds or a duration such as \"90s\", from 1ms up to %s", HeaderTTL, value, MaxTTL)
	var ttl time.Duration
	switch v := value.(type) {
	case int64:
		if v < 1 || v > int64(MaxTTL/time.Second) {
			return 0, wrong
		}
		ttl = time.Duration(v) * time.Second
	case float64:
		if math.Abs(v) > MaxTTL.Seconds() {
			return 0, wrong
		}
		ttl = time.Duration(v * float64(time.Second))
	case string:
		var err error
		if ttl, err = time.ParseDuration(v); err != nil {
			return 0, wrong
		}
	default:
		return 0, wrong
	}
	if ttl < time.Millisecond || ttl > MaxTTL {
		return 0, wrong
	}
	return ttl, nil
}

// headerTime reads the value of HeaderScheduledTime.
func headerTime(value any) (time.Time, error) {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("header %q: %v is no time in RFC 3339 such as \"2030-01-31T08:00:00Z\"", HeaderScheduledTime, value)
	}
	return at.UTC(), nil
}
