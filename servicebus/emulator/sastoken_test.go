package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// sign makes a token as a client does.
func sign(key string, expiry time.Time) string {
	resource := url.QueryEscape("amqp://host/q")
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%s\n%d", resource, expiry.Unix())
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=policy%%20one", resource,
		url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), expiry.Unix())
}

func TestSASTokens(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	good := sign("key", soon)
	all := policies{"policy one": {Key: "key", Rights: RightListen}}
	rights, expires, err := all.checkSAS(good, "q/$management")
	if err != nil || rights != RightListen || expires.Unix() != soon.Unix() {
		t.Errorf("a good token allows %s until %s: %v", rights, expires, err)
	}
	if _, _, err := all.checkSAS(good, "queue"); err == nil || !strings.Contains(err.Error(), "InvalidAudience") {
		t.Errorf("a token for q was good for queue: %v", err)
	}
	const target = "q"
	for reason, token := range map[string]string{
		"InvalidSignature":         sign("another", soon),
		"ExpiredToken":             sign("key", time.Now().Add(-time.Minute)),
		"no SharedAccessSignature": "Bearer x",
		"no number":                strings.Replace(good, "&se=", "&se=x", 1),
		"no policy":                strings.Replace(good, "policy", "another", 1),
		"not encoded":              strings.Replace(good, "&sig=", "&sig=%zz", 1),
	} {
		if _, _, err := all.checkSAS(token, target); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v does not say %q", err, reason)
		}
	}
}
