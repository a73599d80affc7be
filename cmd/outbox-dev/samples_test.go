package main

import (
	"encoding/json"
	"testing"
)

func TestSamplePayloads(t *testing.T) {
	for _, size := range []int{smallestPayload, 81, 600, 20_000, 200_000} {
		s := samples{payloadBytes: size}
		for _, n := range []int{0, 1, 35, 36, 9_999_999} {
			body := s.payload(n)
			if len(body) != size || !json.Valid(body) {
				t.Errorf("payload %d of %d bytes has %d and is valid JSON: %v", n, size, len(body), json.Valid(body))
			}
			if got, err := number(body); got != n || err != nil {
				t.Errorf("payload %d says that it is %d, %v", n, got, err)
			}
		}
		if string(s.payload(1)) == string(s.payload(37)) {
			t.Error("two events have the same payload")
		}
	}
}
