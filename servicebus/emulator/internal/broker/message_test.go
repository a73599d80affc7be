package broker

import (
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x00\x53\x72\xc1\x01\x00\x00\x53\x75\xa0\x05whole"))
	f.Add([]byte("\x00\x53\x73\x45\x00\x53\x74\xc1\x07\x02\xa1\x01k\x50\x01\x00\x53\x77\x40"))
	f.Add([]byte("\x00\x53\x74\x40\x00\x53\x77\x40"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ParseBatch(data, 10)
		m, err := Parse(data)
		if err != nil {
			return
		}
		// Whatever is stored can be given out, and be taken in again.
		m.add(map[string]any{"added": "x"})
		m.state, m.lockedUntil = Locked, 5
		d := m.delivery()
		d.stateful, d.lockAnnotation = true, true
		out, err := d.Append(nil)
		if err != nil {
			t.Fatalf("stored, but not to be given out: %v", err)
		}
		if _, err := Parse(out); err != nil {
			t.Fatalf("given out, but not to be taken in: %v", err)
		}
	})
}
