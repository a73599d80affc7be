package emulator

import (
	"testing"
	"time"
)

func TestGrantsAllowWhatIsBelowTheirEntity(t *testing.T) {
	c := &conn{auth: authorization{}}
	c.authorize("q", RightSend, time.Time{})
	c.authorize("gone", RightManage, time.Now().Add(-time.Second))
	defer c.auth.stop()
	for _, path := range []string{"q", "q/$management"} {
		if err := c.allows(path, RightSend); err != nil {
			t.Errorf("sending to %s: %v", path, err)
		}
	}
	if c.allows("q", RightListen) == nil || c.allows("queue", RightSend) == nil || c.allows("", RightSend) == nil {
		t.Error("a token to send to q allowed more")
	}
	if c.allows("gone", RightSend) == nil {
		t.Error("a token that has ended allowed something")
	}
	c.authorize("", RightListen, time.Time{})
	if err := c.allows("queue", RightListen); err != nil {
		t.Errorf("with a token for the namespace: %v", err)
	}
}
