package emulator

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestTokensAboveTheQuotaAreRefused(t *testing.T) {
	c := &conn{server: &Server{cfg: Config{EntraRights: RightManage}}, auth: authorization{}}
	defer c.auth.stop()
	put := func(name string) int {
		code, _ := c.putToken(&request{
			properties: map[string]any{"operation": "put-token", "type": tokenJWT, "name": name},
			body:       EntraToken(time.Now().Add(time.Hour)),
		})
		return code
	}
	for i := range 1000 {
		if code := put(fmt.Sprint(i)); code != http.StatusAccepted {
			t.Fatalf("token %d was answered with %d", i, code)
		}
	}
	if code := put("another"); code != http.StatusForbidden {
		t.Errorf("token 1,001 was answered with %d, want 403", code)
	}
	if code := put("7"); code != http.StatusAccepted {
		t.Errorf("renewing one of the thousand was answered with %d", code)
	}
}
