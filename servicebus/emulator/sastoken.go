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

// checkSAS verifies a shared access signature: an HMAC-SHA256 over the encoded
// resource and the expiry, under the key of the policy.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-sas
func checkSAS(token, key string) error {
	fields, ok := strings.CutPrefix(token, "SharedAccessSignature ")
	if !ok {
		return errors.New("the token is no SharedAccessSignature")
	}
	values := map[string]string{}
	for _, field := range strings.Split(fields, "&") {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	expiry, err := strconv.ParseInt(values["se"], 10, 64)
	if err != nil {
		return fmt.Errorf("the token's expiry %q is no number", values["se"])
	}
	if at := time.Unix(expiry, 0); time.Now().After(at) {
		return fmt.Errorf("ExpiredToken: the token expired at %s", at.UTC().Format(time.RFC3339))
	}
	signature, err := url.QueryUnescape(values["sig"])
	if err != nil {
		return errors.New("the token's signature is not encoded")
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(values["sr"] + "\n" + values["se"]))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); !hmac.Equal([]byte(want), []byte(signature)) {
		return errors.New("InvalidSignature: the token has an invalid signature")
	}
	return nil
}
