package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

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

// payload is a JSON object of exactly payloadBytes bytes.
func (s samples) payload(n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"n":%d,"note":"Grüße aus Zürich ✓ 東京","data":"`, n)
	const tail = `"}`
	for i := n; b.Len() < s.payloadBytes-len(tail); i++ {
		b.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789"[i%36])
	}
	b.WriteString(tail)
	return b.Bytes()
}

// number reads which event a body claims to be.
func number(body []byte) (int, error) {
	var head struct {
		N *int `json:"n"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return 0, fmt.Errorf("the body is no JSON: %w", err)
	}
	if head.N == nil {
		return 0, fmt.Errorf("the body has no number")
	}
	return *head.N, nil
}
