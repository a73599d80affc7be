package amqp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"
)

func TestValuesComeBack(t *testing.T) {
	for _, v := range []any{
		nil, true, false, uint8(200), uint16(60000), uint32(0), uint32(7), uint32(1 << 30), uint64(0), uint64(9),
		uint64(1 << 60), int8(-3), int16(-300), int32(-70000), int64(-1 << 40), float32(1.5), 2.25,
		"short", strings.Repeat("long", 100), Symbol("sym"),
		[]byte{1, 2, 3},
		UUID{1, 15: 9},
		time.UnixMilli(1700000000123).UTC(),
		[]any{int32(1), "two", []any{}},
		map[string]any{"a": int64(1), "b": map[string]any{"c": nil}},
		Described{Descriptor: uint64(0x137000000C), Value: "session"},
	} {
		r := NewReader(AppendValue(nil, v))
		got, err := r.Value()
		if err != nil || r.Len() != 0 {
			t.Errorf("%#v: %v, %d bytes left", v, err, r.Len())
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestArraysReadAsLists(t *testing.T) {
	at := time.UnixMilli(1700000000123).UTC()
	for _, c := range []struct {
		array any
		want  []any
	}{
		{[]int64{1, -2}, []any{int64(1), int64(-2)}},
		{[]Symbol{"a", "bc"}, []any{Symbol("a"), Symbol("bc")}},
		{[]time.Time{at}, []any{at}},
		{[]int64{}, []any{}},
	} {
		r := NewReader(AppendValue(nil, c.array))
		got, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func performatives() []Performative {
	failure := &Error{Condition: "amqp:not-found", Description: "where?", Info: map[string]any{"a": "b"}}
	return []Performative{
		&Open{ContainerID: "c", Hostname: "h", MaxFrameSize: 65536, ChannelMax: 4999, IdleTimeoutMillis: 30000},
		&Begin{RemoteChannel: ptr(uint16(3)), NextOutgoingID: 1, IncomingWindow: 5000, OutgoingWindow: 2, HandleMax: 255},
		&Begin{HandleMax: 1<<32 - 1},
		&Attach{
			Name: "n", Handle: 2, SenderSettle: SenderMixed, ReceiverSettle: ReceiverSecond,
			Source: &Source{Address: "q", Filter: map[string]any{"f": Described{Descriptor: uint64(12), Value: nil}}},
			Target: &Target{Address: "t", Dynamic: true}, InitialDeliveryCount: 4, MaxMessageSize: 1 << 40,
			Properties: map[Symbol]any{"p": uint64(5)},
		},
		&Attach{Name: "refused", Role: RoleReceiver, Coordinator: true},
		&Flow{NextIncomingID: ptr(uint32(0)), IncomingWindow: 1, NextOutgoingID: 2, OutgoingWindow: 3},
		&Flow{Handle: ptr(uint32(4)), DeliveryCount: ptr(uint32(5)), LinkCredit: ptr(uint32(6)), Drain: true, Echo: true},
		&Transfer{Handle: 1, DeliveryID: ptr(uint32(2)), DeliveryTag: []byte("tag"), MessageFormat: ptr(uint32(BatchFormat)), Settled: true},
		&Transfer{Handle: 1, More: true},
		&Transfer{Aborted: true},
		&Disposition{Role: RoleReceiver, First: 1, Last: 9, Settled: true, State: &State{Outcome: Accepted}},
		&Disposition{State: &State{Outcome: Rejected, Error: failure}},
		&Disposition{State: &State{Outcome: Released}},
		&Disposition{State: &State{Outcome: Modified, UndeliverableHere: true}},
		&Disposition{First: 7, Last: 7},
		&Detach{Handle: 3, Closed: true, Error: failure},
		&End{Error: failure},
		&Close{},
		&SASLInit{Mechanism: "PLAIN", Response: []byte("\x00a\x00b")},
		&SASLMechanisms{Mechanisms: []Symbol{"PLAIN", "ANONYMOUS"}},
		&SASLOutcome{Code: SASLAuth},
	}
}

func TestPerformativesComeBack(t *testing.T) {
	for _, p := range performatives() {
		frame := AppendFrame(nil, FrameAMQP, 7, p, []byte("payload"))
		f, err := NewFrameReader(bytes.NewReader(frame), 4096).Next()
		if err != nil {
			t.Errorf("%+v: %v", p, err)
			continue
		}
		if f.Channel != 7 || string(f.Payload) != "payload" || f.Size != len(frame) {
			t.Errorf("frame is %+v", f)
		}
		if diff := cmp.Diff(p, f.Body); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestFrameReaderTakesFramesInPieces(t *testing.T) {
	var stream []byte
	for range 3 {
		stream = append(AppendFrame(stream, FrameAMQP, 1, &End{}, nil), EmptyFrame[:]...)
	}
	r := NewFrameReader(iotestOneByte{bytes.NewReader(stream)}, MinMaxFrameSize)
	for i := range 6 {
		f, err := r.Next()
		if err != nil || (f.Body == nil) != (i%2 == 1) {
			t.Fatalf("frame %d is %+v, %v", i, f, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last frame: %v, want io.EOF", err)
	}
	cut := NewFrameReader(bytes.NewReader(stream[:5]), MinMaxFrameSize)
	if _, err := cut.Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("within a frame: %v, want io.ErrUnexpectedEOF", err)
	}
}

type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(b []byte) (int, error) { return o.r.Read(b[:1]) }

func TestFramesAboveTheLimitAreRefusedUnread(t *testing.T) {
	frame := AppendFrame(nil, FrameAMQP, 0, &Open{ContainerID: strings.Repeat("x", 1000)}, nil)
	if _, err := NewFrameReader(bytes.NewReader(frame), MinMaxFrameSize).Next(); !errors.Is(err, ErrMalformed) {
		t.Errorf("a frame above the limit: %v", err)
	}
}

func TestTransferIsCutToFrames(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 300)
	transfer := &Transfer{DeliveryID: ptr(uint32(1)), DeliveryTag: make([]byte, 16), MessageFormat: ptr(uint32(0))}
	var stream []byte
	rest := payload
	for {
		if stream, rest = AppendTransfer(stream, 2, transfer, rest, 1024); rest == nil {
			break
		}
	}
	r := NewFrameReader(bytes.NewReader(stream), 1024)
	var got []byte
	for {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		part := f.Body.(*Transfer)
		if first := got == nil; first != (part.DeliveryID != nil) {
			t.Errorf("delivery-id on the first frame only: %+v", part)
		}
		got = append(got, f.Payload...)
		if !part.More {
			break
		}
	}
	if !bytes.Equal(got, payload) || r.Buffered() != 0 {
		t.Errorf("%d bytes came back of %d, %d are left", len(got), len(payload), r.Buffered())
	}
}

func TestSectionsOfALibrarysMessage(t *testing.T) {
	message := goamqp.NewMessage([]byte("body"))
	message.Header = &goamqp.MessageHeader{Durable: true, Priority: 7, TTL: time.Minute, DeliveryCount: 2}
	message.Annotations = goamqp.Annotations{"x-opt-partition-key": "p"}
	message.Properties = &goamqp.MessageProperties{MessageID: "id", GroupID: ptr(""), Subject: ptr("s"), CorrelationID: "c"}
	message.ApplicationProperties = map[string]any{"k": int64(1)}
	raw, err := message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	sections := NewSections(raw)
	var seen []uint64
	for {
		s, ok, err := sections.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		seen = append(seen, s.Descriptor)
		switch s.Descriptor {
		case DescHeader:
			h, err := DecodeHeader(s.Value)
			if want := (Header{Durable: true, Priority: 7, TTLMillis: 60000, DeliveryCount: 2}); err != nil || h != want {
				t.Errorf("header is %+v, %v", h, err)
			}
		case DescProperties:
			p, err := DecodeProperties(s.Value)
			if err != nil || p.Subject != "s" || !p.HasGroup || p.GroupID != "" || p.CorrelationID == nil {
				t.Errorf("properties are %+v, %v", p, err)
			}
			id, _, hasGroup, err := DecodeIdentity(s.Value)
			if err != nil || !bytes.Equal(id, p.MessageID) || !hasGroup {
				t.Errorf("identity is %q, %t, %v", id, hasGroup, err)
			}
		}
	}
	if diff := cmp.Diff([]uint64{DescHeader, DescMessageAnnotations, DescProperties, DescApplicationProperties, DescData}, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMapWithReplacesAndAdds(t *testing.T) {
	original := AppendValue(nil, map[string]any{"keep": int32(1), "replace": "old"})
	b, err := AppendMapWith(nil, original, func(key []byte) bool { return string(key) == "replace" }, 1, func(b []byte) []byte {
		return AppendString(AppendString(b, "replace"), "new")
	})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(b)
	got, err := r.Value()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"keep": int32(1), "replace": "new"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := AppendNull(nil)
	for range MaxDepth + 2 {
		inner := deep
		b, mark := StartList(nil, 1)
		deep = EndCompound(append(b, inner...), mark)
	}
	r := NewReader(deep)
	if _, err := r.Value(); !errors.Is(err, ErrMalformed) {
		t.Errorf("too deep a list: %v", err)
	}
	described := bytes.Repeat([]byte{codeDescribed, codeSmallUlong, 1}, MaxDepth+2)
	r = NewReader(described)
	if err := r.Skip(); !errors.Is(err, ErrMalformed) {
		t.Errorf("too deep a descriptor: %v", err)
	}
}

// TestCountsAreNotBelieved holds allocation to what was really sent: these few
// bytes claim four billion elements.
func TestCountsAreNotBelieved(t *testing.T) {
	for name, b := range map[string][]byte{
		"list":           {codeList32, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, codeNull},
		"map":            {codeMap32, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfe, codeNull},
		"array of nulls": {codeArray32, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, codeNull},
		"binary":         {codeBinary32, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		allocated := testing.AllocsPerRun(10, func() {
			r := NewReader(b)
			if _, err := r.Value(); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocated > 20 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}
