package amqp

// SASLMechanisms is what a server offers.
type SASLMechanisms struct{ Mechanisms []Symbol }

// SASLInit is what the client chose, with its first response.
type SASLInit struct {
	Mechanism Symbol
	Response  []byte
}

// Codes of a SASL outcome.
const (
	SASLOK   uint8 = 0
	SASLAuth uint8 = 1
)

// SASLOutcome ends the SASL exchange.
type SASLOutcome struct{ Code uint8 }

func (m *SASLMechanisms) append(b []byte) []byte {
	return appendComposite(b, descSASLMechanisms, 1, func(b []byte) []byte {
		return appendSymbols(b, m.Mechanisms)
	})
}

func (i *SASLInit) append(b []byte) []byte {
	return appendComposite(b, descSASLInit, 2, func(b []byte) []byte {
		return AppendBinary(AppendSymbol(b, i.Mechanism), i.Response)
	})
}

func (o *SASLOutcome) append(b []byte) []byte {
	return appendComposite(b, descSASLOutcome, 1, func(b []byte) []byte {
		return AppendUbyte(b, o.Code)
	})
}

// saslMechanisms reads one symbol or an array of them.
func (f *fields) saslMechanisms() *SASLMechanisms {
	m := &SASLMechanisms{}
	switch v := f.value().(type) {
	case Symbol:
		m.Mechanisms = []Symbol{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(Symbol); ok {
				m.Mechanisms = append(m.Mechanisms, s)
			}
		}
	}
	return m
}
