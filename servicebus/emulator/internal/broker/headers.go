package broker

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Limits on what a message says about itself.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
//
// That they are there is documented. That bytes are counted as they are
// encoded, names included, and the condition of the refusal are believed: what
// the page names is the SerializationException of a .NET client long gone.
const (
	maxHeaderBytes   = 64 << 10
	maxPropertyBytes = 32 << 10
)

// checkHeader refuses a message whose sections before the body are header
// bytes in all, or with an application property that is too large.
func checkHeader(header int, application []byte) error {
	if header > maxHeaderBytes {
		return amqp.Errorf(CondArgument, "the properties of a message take %d bytes, at most %d are allowed", header, maxHeaderBytes)
	}
	if len(application) <= maxPropertyBytes {
		return nil
	}
	r := amqp.NewReader(application)
	in, count, err := r.Map()
	if err != nil {
		return decodeError(err)
	}
	for range count / 2 {
		name, err := in.Raw()
		if err != nil {
			return decodeError(err)
		}
		value, err := in.Raw()
		if err != nil {
			return decodeError(err)
		}
		if size := len(name) + len(value); size > maxPropertyBytes {
			return amqp.Errorf(CondArgument, "an application property takes %d bytes, at most %d are allowed", size, maxPropertyBytes)
		}
	}
	return nil
}
