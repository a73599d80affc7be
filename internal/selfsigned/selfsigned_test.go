package selfsigned

import (
	"crypto/x509"
	"testing"
)

func TestNew(t *testing.T) {
	c, err := New("test", "10.1.2.3", "broker.local", "")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "10.1.2.3": true, "broker.local": true, "elsewhere": false} {
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}
