package emulator

import (
	"fmt"
	"sync"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// throttle counts the credits of a namespace: so many at the start of each
// second, one for each message that is sent and one for each filter that it is
// compared with.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-throttling
//
// What is sent while there are any is taken whole. That what it takes beyond them
// is owed to the seconds that follow is believed; without, a batch a second could
// be of any size.
type throttle struct {
	mu     sync.Mutex
	limit  int // 0 for none
	left   int
	second int64
	fired  int64
}

func (t *throttle) set(limit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit, t.left, t.second = limit, limit, time.Now().Unix()
}

// spend takes credits, or says that there are none left.
func (t *throttle) spend(credits int) *amqp.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit == 0 {
		return nil
	}
	if now := time.Now().Unix(); now != t.second {
		elapsed := min(now-t.second, 3600)
		t.left = min(t.left+int(elapsed)*t.limit, t.limit)
		t.second = now
	}
	if t.left <= 0 {
		t.fired++
		return amqp.Errorf(condServerBusy, throttled)
	}
	t.left -= credits
	return nil
}

// throttled is what the service says.
const throttled = "The request was terminated because the entity is being throttled. " +
	"Error code : 50009. Please wait 2 seconds and try again."

// SetCreditsPerSecond changes Config.CreditsPerSecond while the server runs. It
// panics on a negative number.
func (s *Server) SetCreditsPerSecond(n int) {
	if n < 0 {
		panic(fmt.Sprintf("emulator: %d credits per second", n))
	}
	s.throttle.set(n)
}

// Throttled is how many sends were refused for want of credits.
func (s *Server) Throttled() int64 {
	s.throttle.mu.Lock()
	defer s.throttle.mu.Unlock()
	return s.throttle.fired
}
