package amqp

// fields reads the fields of a composite in order. A missing field reads as
// its default, as null does. The first error sticks.
type fields struct {
	in   Reader
	left int
	err  error
}

func newFields(r *Reader) fields {
	in, count, err := r.List()
	return fields{in: in, left: count, err: err}
}

// absent moves to the next field and says whether it has no value.
func (f *fields) absent() bool {
	if f.err != nil || f.left == 0 {
		return true
	}
	f.left--
	return f.in.Null()
}

func (f *fields) skip(n int) {
	for range n {
		if !f.absent() {
			f.err = f.in.Skip()
		}
	}
}

func (f *fields) uint(fallback uint64, limit uint64) uint64 {
	if f.absent() {
		return fallback
	}
	v, err := f.in.Uint()
	if err == nil && v > limit {
		err = malformed("%d where at most %d fits", v, limit)
	}
	f.err = err
	return v
}

func (f *fields) uint8(fallback uint8) uint8    { return uint8(f.uint(uint64(fallback), 1<<8-1)) }
func (f *fields) uint16(fallback uint16) uint16 { return uint16(f.uint(uint64(fallback), 1<<16-1)) }
func (f *fields) uint32(fallback uint32) uint32 { return uint32(f.uint(uint64(fallback), 1<<32-1)) }

func (f *fields) optionalUint32() *uint32 {
	if f.absent() {
		return nil
	}
	v, err := f.in.Uint()
	if err == nil && v > 1<<32-1 {
		err = malformed("%d where 32 bits belong", v)
	}
	f.err = err
	n := uint32(v)
	return &n
}

func (f *fields) bool() bool {
	if f.absent() {
		return false
	}
	v, err := f.in.Bool()
	f.err = err
	return v
}

func (f *fields) string() string {
	if f.absent() {
		return ""
	}
	v, err := f.in.String()
	f.err = err
	return v
}

func (f *fields) bytes() []byte {
	if f.absent() {
		return nil
	}
	v, err := f.in.Bytes()
	f.err = err
	return v
}

func (f *fields) value() any {
	if f.absent() {
		return nil
	}
	v, err := f.in.Value()
	f.err = err
	return v
}

func (f *fields) valueMap() map[string]any {
	m, _ := f.value().(map[string]any)
	return m
}

// described enters a field that is itself a composite.
func (f *fields) described() (descriptor uint64, inner fields, present bool) {
	if f.absent() {
		return 0, fields{}, false
	}
	descriptor, f.err = f.in.Descriptor()
	if f.err != nil {
		return 0, fields{}, false
	}
	inner = newFields(&f.in)
	return descriptor, inner, true
}

// decodePerformative reads the body at the front of r and leaves r at the
// payload behind it.
func decodePerformative(r *Reader) (Performative, error) {
	descriptor, err := r.Descriptor()
	if err != nil {
		return nil, err
	}
	f := newFields(r)
	if f.err != nil {
		return nil, f.err
	}
	p := decodeBody(descriptor, &f)
	if f.err != nil {
		return nil, f.err
	}
	if p == nil {
		return nil, malformed("performative 0x%02x is unknown", descriptor)
	}
	return p, nil
}

func decodeBody(descriptor uint64, f *fields) Performative {
	switch descriptor {
	case descTransfer:
		t := &Transfer{Handle: f.uint32(0), DeliveryID: f.optionalUint32(), DeliveryTag: f.bytes()}
		t.MessageFormat, t.Settled, t.More = f.optionalUint32(), f.bool(), f.bool()
		f.skip(3) // rcv-settle-mode, state, resume
		t.Aborted = f.bool()
		return t
	case descDisposition:
		d := &Disposition{Role: f.bool(), First: f.uint32(0)}
		d.Last, d.Settled, d.State = f.uint32(d.First), f.bool(), f.state()
		return d
	case descFlow:
		w := &Flow{NextIncomingID: f.optionalUint32(), IncomingWindow: f.uint32(0), NextOutgoingID: f.uint32(0)}
		w.OutgoingWindow, w.Handle, w.DeliveryCount = f.uint32(0), f.optionalUint32(), f.optionalUint32()
		w.LinkCredit = f.optionalUint32()
		f.skip(1) // available
		w.Drain, w.Echo = f.bool(), f.bool()
		return w
	case descAttach:
		return f.attach()
	case descDetach:
		return &Detach{Handle: f.uint32(0), Closed: f.bool(), Error: f.error()}
	case descBegin:
		b := &Begin{}
		if !f.absent() {
			channel, err := f.in.Uint()
			remote := uint16(channel)
			b.RemoteChannel, f.err = &remote, err
		}
		b.NextOutgoingID, b.IncomingWindow, b.OutgoingWindow = f.uint32(0), f.uint32(0), f.uint32(0)
		b.HandleMax = f.uint32(1<<32 - 1)
		return b
	case descOpen:
		o := &Open{ContainerID: f.string(), Hostname: f.string(), MaxFrameSize: f.uint32(1<<32 - 1)}
		o.ChannelMax, o.IdleTimeoutMillis = f.uint16(1<<16-1), f.uint32(0)
		return o
	case descEnd:
		return &End{Error: f.error()}
	case descClose:
		return &Close{Error: f.error()}
	case descSASLInit:
		return &SASLInit{Mechanism: Symbol(f.string()), Response: append([]byte(nil), f.bytes()...)}
	case descSASLMechanisms:
		return f.saslMechanisms()
	case descSASLOutcome:
		return &SASLOutcome{Code: f.uint8(0)}
	default:
		return nil
	}
}

func (f *fields) attach() *Attach {
	a := &Attach{Name: f.string(), Handle: f.uint32(0), Role: f.bool()}
	a.SenderSettle, a.ReceiverSettle = f.uint8(SenderMixed), f.uint8(ReceiverFirst)
	a.Source = f.source()
	a.Target, a.Coordinator = f.target()
	f.skip(2) // unsettled, incomplete-unsettled: links are never resumed
	a.InitialDeliveryCount, a.MaxMessageSize = f.uint32(0), f.uint(0, 1<<64-1)
	f.skip(2) // offered and desired capabilities
	if properties := f.valueMap(); len(properties) > 0 {
		a.Properties = make(map[Symbol]any, len(properties))
		for name, v := range properties {
			a.Properties[Symbol(name)] = v
		}
	}
	return a
}

func (f *fields) source() *Source {
	descriptor, in, present := f.described()
	if !present {
		return nil
	}
	if descriptor != descSource {
		f.err = malformed("source with descriptor 0x%02x", descriptor)
		return nil
	}
	s := &Source{Address: in.string()}
	in.skip(3) // durable, expiry-policy, timeout
	s.Dynamic = in.bool()
	in.skip(2) // dynamic-node-properties, distribution-mode
	s.Filter = in.valueMap()
	f.err = in.err
	return s
}

func (f *fields) target() (t *Target, coordinator bool) {
	descriptor, in, present := f.described()
	if !present {
		return nil, false
	}
	switch descriptor {
	case descCoordinator:
		return nil, true
	case descTarget:
		t = &Target{Address: in.string()}
		in.skip(3) // durable, expiry-policy, timeout
		t.Dynamic = in.bool()
		f.err = in.err
		return t, false
	default:
		f.err = malformed("target with descriptor 0x%02x", descriptor)
		return nil, false
	}
}

func (f *fields) error() *Error {
	descriptor, in, present := f.described()
	if !present {
		return nil
	}
	if descriptor != descError {
		f.err = malformed("error with descriptor 0x%02x", descriptor)
		return nil
	}
	e := &Error{Condition: Symbol(in.string()), Description: in.string(), Info: in.valueMap()}
	f.err = in.err
	return e
}

func (f *fields) state() *State {
	descriptor, in, present := f.described()
	if !present {
		return nil
	}
	s := &State{}
	switch descriptor {
	case descAccepted:
		s.Outcome = Accepted
	case descRejected:
		s.Outcome, s.Error = Rejected, in.error()
	case descReleased:
		s.Outcome = Released
	case descModified:
		s.Outcome = Modified
		in.skip(1) // delivery-failed: Service Bus counts every abandon as one
		s.UndeliverableHere, s.Annotations = in.bool(), in.valueMap()
	case descReceived:
		s.Outcome = Received
	default:
		s.Outcome = Other
	}
	f.err = in.err
	return s
}
