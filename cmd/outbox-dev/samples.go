package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"azsqloutbox/sqlserver"
)

// samples makes the demo's events. Each is a function of its number, so that a
// receiver can check a message without having kept what was written.
type samples struct {
	payloadBytes int
}

// smallestPayload holds the number and some text that is not ASCII.
const smallestPayload = 80

var sampleTypes = [...]string{"order-placed", "order-paid", "parcel-shipped"}

func (s samples) event(n int) sqlserver.OutboxEvent {
	return sqlserver.OutboxEvent{
		AggregateType: "order",
		AggregateID:   strconv.Itoa(n / 3),
		EventType:     sampleTypes[n%len(sampleTypes)],
		Payload:       s.payload(n),
		Headers:       map[string]any{"tenant": tenant(n), "sequence": n, "rush": n%2 == 0},
	}
}

func tenant(n int) string { return fmt.Sprintf("tenant-%d", n%7) }

const (
	payloadHead = `{"n":`
	payloadTail = `"}`
	alphabet    = "abcdefghijklmnopqrstuvwxyz0123456789"
)

var filler = strings.Repeat(alphabet, 1<<13/len(alphabet))

// payload is a JSON object of exactly payloadBytes bytes. It begins with the
// number; what fills it up begins at another letter for each.
func (s samples) payload(n int) []byte {
	b := make([]byte, 0, s.payloadBytes)
	b = append(b, payloadHead...)
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, `,"note":"Grüße aus Zürich ✓ 東京","data":"`...)
	for from := n % len(alphabet); len(b) < s.payloadBytes-len(payloadTail); from = 0 {
		piece := filler[from:]
		b = append(b, piece[:min(len(piece), s.payloadBytes-len(payloadTail)-len(b))]...)
	}
	return append(b, payloadTail...)
}

// number reads which event a body claims to be; the rest is compared with what
// that event was.
func number(body []byte) (int, error) {
	rest, ok := bytes.CutPrefix(body, []byte(payloadHead))
	digits, _, _ := bytes.Cut(rest, []byte(","))
	n, err := strconv.Atoi(string(digits))
	if !ok || err != nil {
		return 0, errors.New("the body does not begin with the number of an event")
	}
	return n, nil
}
