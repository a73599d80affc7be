package emulator

import (
	"fmt"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

const condDetachForced amqp.Symbol = "amqp:link:detach-forced"

// idleWatch detaches a link over which no message has gone for a time, as the
// service does after ten minutes (azure-sdk-for-go #17182). The connection's
// lock guards it.
type idleWatch struct {
	timeout time.Duration
	used    time.Time
	timer   *time.Timer
}

// watchIdle begins the watch. Links to $cbs have none, so that a client can
// still renew its tokens; that the service spares them is believed.
func (b *linkBase) watchIdle(l link) {
	timeout := b.session.conn.server.cfg.LinkIdleTimeout
	if timeout == 0 || b.path == cbsPath || b.closed {
		return
	}
	b.idle = &idleWatch{timeout: timeout, used: time.Now()}
	b.idle.timer = time.AfterFunc(timeout, func() { b.detachIdle(l) })
}

// touch says that a message went over the link.
func (b *linkBase) touch() {
	if b.idle != nil {
		b.idle.used = time.Now()
	}
}

func (b *linkBase) detachIdle(l link) {
	c := b.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.closed {
		return
	}
	if s, ok := l.(*sender); ok && !s.attached {
		b.touch() // it waits for a session, which has a timeout of its own
	}
	if left := b.idle.timeout - time.Since(b.idle.used); left > 0 {
		b.idle.timer.Reset(left)
		return
	}
	// The text is that of
	// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
	side, who := "consumer", "AmqpMessageConsumer"
	if _, ok := l.(*receiver); ok {
		side, who = "publisher", "AmqpMessagePublisher"
	}
	b.detachWith(l, amqp.Errorf(condDetachForced, "The link '%s' is force detached by the broker due to errors occurred in %s(link%d). "+
		"Detach origin: %s.IdleTimerExpired: Idle timeout: %s.", b.name, side, b.handle, who, timeSpan(b.idle.timeout)))
}

// timeSpan is a duration as .NET writes it.
func timeSpan(d time.Duration) string {
	clock := fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	if ticks := d % time.Second / 100; ticks > 0 {
		return fmt.Sprintf("%s.%07d", clock, ticks)
	}
	return clock
}

func (w *idleWatch) stop() {
	if w != nil {
		w.timer.Stop()
	}
}
