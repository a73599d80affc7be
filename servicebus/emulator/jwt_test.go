package emulator

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestJWTs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	token := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	const ours = `"aud":"https://servicebus.azure.net"`
	for name, c := range map[string]struct{ token, reason string }{
		"good":              {token(`{` + ours + `,"exp":1800000060,"nbf":1800000000}`), ""},
		"a slash behind":    {token(`{"aud":"https://servicebus.azure.net/","exp":1800000060}`), ""},
		"several audiences": {token(`{"aud":["other","https://servicebus.azure.net"],"exp":1800000060.5}`), ""},
		"of EntraToken":     {EntraToken(now.Add(time.Minute)), ""},

		"empty":              {"", "InvalidToken"},
		"a word":             {"token", "InvalidToken"},
		"no signature":       {strings.TrimSuffix(EntraToken(now.Add(time.Minute)), "dW5zaWduZWQ"), "InvalidToken"},
		"four parts":         {EntraToken(now.Add(time.Minute)) + ".x", "InvalidToken"},
		"not base64url":      {"e30.+/.c2ln", "InvalidToken"},
		"not JSON":           {token("claims"), "InvalidToken"},
		"no audience":        {token(`{"exp":1800000060}`), "InvalidAudience"},
		"for SQL":            {token(`{"aud":"https://database.windows.net/","exp":1800000060}`), "InvalidAudience"},
		"begins like ours":   {token(`{"aud":"https://servicebus.azure.net.example","exp":1800000060}`), "InvalidAudience"},
		"no expiry":          {token(`{` + ours + `}`), "InvalidToken"},
		"an expiry of words": {token(`{` + ours + `,"exp":"soon"}`), "InvalidToken"},
		"expired":            {EntraToken(now), "ExpiredToken"},
		"of tomorrow":        {token(`{` + ours + `,"exp":1800000060,"nbf":1800000001}`), "InvalidToken"},
	} {
		expires, err := checkJWT(c.token, now)
		switch {
		case c.reason == "" && (err != nil || !expires.After(now)):
			t.Errorf("%s: %v, until %s", name, err, expires)
		case c.reason != "" && (err == nil || !strings.Contains(fmt.Sprint(err), c.reason)):
			t.Errorf("%s: %v, want %s", name, err, c.reason)
		}
	}
}
