package broker

// history remembers the message ids of a window of time, oldest first. It is
// guarded by its owner.
type history struct {
	window int64 // ms
	seen   map[string]struct{}
	order  []sighting
}

type sighting struct {
	id string
	at int64
}

func newHistory(windowMillis int64) *history {
	return &history{window: windowMillis, seen: map[string]struct{}{}}
}

// fresh returns those of messages whose id was not seen within the window, and
// remembers them. The result shares the array of messages.
//
// The service drops a duplicate silently and reports success.
// https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func (h *history) fresh(messages []*Message, now int64) []*Message {
	h.forget(now)
	kept := messages[:0]
	for _, m := range messages {
		if _, duplicate := h.seen[string(m.id)]; duplicate {
			continue
		}
		id := string(m.id)
		h.seen[id] = struct{}{}
		h.order = append(h.order, sighting{id: id, at: now})
		kept = append(kept, m)
	}
	return kept
}

func (h *history) forget(now int64) {
	old := 0
	for old < len(h.order) && h.order[old].at+h.window <= now {
		delete(h.seen, h.order[old].id)
		old++
	}
	if old > 0 {
		clear(h.order[:old])
		h.order = h.order[old:]
	}
}
