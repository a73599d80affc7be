package amqp

import (
	"bytes"
	"testing"

	goamqp "github.com/Azure/go-amqp"
)

func FuzzFrame(f *testing.F) {
	for _, p := range performatives() {
		f.Add(AppendFrame(nil, FrameAMQP, 1, p, []byte("payload")))
	}
	f.Add(EmptyFrame[:])
	f.Add([]byte{0, 0, 0, 20, 2, 0, 0, 0, 0, 0x53, 0x10, 0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewFrameReader(bytes.NewReader(data), 4096)
		for {
			frame, err := r.Next()
			if err != nil {
				return
			}
			if frame.Body == nil {
				continue
			}
			// What was understood can be said, and is understood again. Only
			// values that are passed on as they came have no encoding here.
			switch frame.Body.(type) {
			case *Transfer, *Flow, *Begin, *Open:
				again := AppendFrame(nil, FrameAMQP, frame.Channel, frame.Body, nil)
				if _, err := NewFrameReader(bytes.NewReader(again), 1<<20).Next(); err != nil {
					t.Fatalf("%+v: %v", frame.Body, err)
				}
			}
		}
	})
}

func FuzzValue(f *testing.F) {
	f.Add(AppendValue(nil, map[string]any{"a": []any{int64(1), "b", nil, UUID{}}}))
	f.Add(AppendValue(nil, []int64{1, 2}))
	f.Add(AppendValue(nil, Described{Descriptor: uint64(1), Value: Described{Descriptor: Symbol("s"), Value: 1.5}}))
	f.Add([]byte{codeDescribed, codeDescribed, codeNull, codeNull, codeNull})
	f.Add([]byte{codeArray8, 3, 1, codeList8, 0})
	f.Add([]byte{codeArray32, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, codeNull})
	f.Fuzz(func(t *testing.T, data []byte) {
		skipping, reading := NewReader(data), NewReader(data)
		skipErr := skipping.Skip()
		if _, err := reading.Value(); err == nil && (skipErr != nil || skipping.Len() != reading.Len()) {
			t.Fatalf("Value leaves %d bytes, Skip %d (%v)", reading.Len(), skipping.Len(), skipErr)
		}
	})
}

func FuzzSections(f *testing.F) {
	message := goamqp.NewMessage([]byte("body"))
	message.Annotations = goamqp.Annotations{"x-opt-partition-key": "p"}
	message.Properties = &goamqp.MessageProperties{MessageID: "id"}
	raw, err := message.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{0, 0x53, 0x75, 0xa0, 0})
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		sections := NewSections(data)
		end := 0
		for {
			s, ok, err := sections.Next()
			if err != nil || !ok {
				return
			}
			if s.Start < end {
				t.Fatalf("a section begins at %d, before the last one's end %d", s.Start, end)
			}
			end = s.Start + len(s.Value)
			_, _ = DecodeHeader(s.Value)
			_, _ = DecodeProperties(s.Value)
			_, _, _, _ = DecodeIdentity(s.Value)
			_, _ = AppendMapWith(nil, s.Value, func([]byte) bool { return false }, 0, func(b []byte) []byte { return b })
		}
	})
}
