package emulator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// entraAudience is the resource that a token for Service Bus is asked for. A
// token says it with a slash behind or without, as it was asked for.
// https://learn.microsoft.com/azure/service-bus-messaging/authenticate-application
const entraAudience = "https://servicebus.azure.net"

// claims are those of a JWT that are looked at (RFC 7519, section 4.1).
type claims struct {
	Audience  audience     `json:"aud"`
	Expires   *json.Number `json:"exp"`
	NotBefore *json.Number `json:"nbf"`
}

// audience is one text or several.
type audience []string

func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// checkJWT verifies what can be without the authority that gave the token out:
// its form, for whom it is and when it is good. It returns when it ends. The
// signature must be there and is not checked.
func checkJWT(token string, now time.Time) (expires time.Time, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return expires, errors.New("InvalidToken: not a JWT of header, claims and signature")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return expires, errors.New("InvalidToken: the claims are not base64url")
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return expires, errors.New("InvalidToken: the claims are not JSON")
	}
	if !slices.ContainsFunc(c.Audience, func(a string) bool { return strings.TrimRight(a, "/") == entraAudience }) {
		return expires, fmt.Errorf("InvalidAudience: a token for %q, where %q is wanted", []string(c.Audience), entraAudience)
	}
	if c.Expires == nil {
		return expires, errors.New("InvalidToken: the token has no expiry")
	}
	if expires, err = numericDate(*c.Expires); err != nil {
		return expires, fmt.Errorf("InvalidToken: exp: %w", err)
	}
	if !now.Before(expires) {
		return expires, fmt.Errorf("ExpiredToken: the token expired at %s", expires.UTC().Format(time.RFC3339))
	}
	if c.NotBefore == nil {
		return expires, nil
	}
	from, err := numericDate(*c.NotBefore)
	if err != nil {
		return expires, fmt.Errorf("InvalidToken: nbf: %w", err)
	}
	if now.Before(from) {
		return expires, fmt.Errorf("InvalidToken: the token is not good before %s", from.UTC().Format(time.RFC3339))
	}
	return expires, nil
}

// numericDate is seconds since the epoch, with a fraction or without.
func numericDate(n json.Number) (time.Time, error) {
	seconds, err := n.Float64()
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return time.Time{}, fmt.Errorf("%q is no time", n)
	}
	return time.UnixMilli(int64(seconds * 1000)), nil
}

// EntraToken is a JWT for Service Bus that ends at expires, to the second, of
// the form that Entra gives out. Nobody has signed it, which only an emulator
// overlooks. What it allows is up to [Config.EntraRights].
func EntraToken(expires time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	payload := fmt.Sprintf(`{"aud":"%s/","iss":"https://sts.windows.net/emulator/","exp":%d}`, entraAudience, expires.Unix())
	return encode([]byte(`{"typ":"JWT","alg":"none"}`)) + "." + encode([]byte(payload)) + "." + encode([]byte("unsigned"))
}
