package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// checkSAS verifies a shared access signature, an HMAC-SHA256 over the encoded
// resource and the expiry under the key of the policy that it names, and
// returns what it allows until when. The resource must be target or above it.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-sas
func (all policies) checkSAS(token, target string) (rights Rights, expires time.Time, err error) {
	fields, ok := strings.CutPrefix(token, "SharedAccessSignature ")
	if !ok {
		return 0, expires, errors.New("the token is no SharedAccessSignature")
	}
	values := map[string]string{}
	for _, field := range strings.Split(fields, "&") {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	expiry, err := strconv.ParseInt(values["se"], 10, 64)
	if err != nil {
		return 0, expires, fmt.Errorf("the token's expiry %q is no number", values["se"])
	}
	if expires = time.Unix(expiry, 0); time.Now().After(expires) {
		return 0, expires, fmt.Errorf("ExpiredToken: the token expired at %s", expires.UTC().Format(time.RFC3339))
	}
	signature, err := url.QueryUnescape(values["sig"])
	if err != nil {
		return 0, expires, errors.New("the token's signature is not encoded")
	}
	resource, err := url.QueryUnescape(values["sr"])
	if err != nil || !covers(path(resource), target) {
		return 0, expires, fmt.Errorf("InvalidAudience: a token for %q is not valid for '%s'", resource, target)
	}
	name, err := url.QueryUnescape(values["skn"])
	policy, ok := all[name]
	if err != nil || !ok {
		return 0, expires, fmt.Errorf("InvalidSignature: there is no policy %q", values["skn"])
	}
	mac := hmac.New(sha256.New, []byte(policy.Key))
	mac.Write([]byte(values["sr"] + "\n" + values["se"]))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); !hmac.Equal([]byte(want), []byte(signature)) {
		return 0, expires, errors.New("InvalidSignature: the token has an invalid signature")
	}
	return policy.Rights, expires, nil
}
