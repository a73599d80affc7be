package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/broker"
)

func renewSessionLock(q *broker.Queue, arguments map[string]any) (any, error) {
	id, err := argument[string](arguments, "session-id")
	if err != nil {
		return nil, err
	}
	until, err := q.RenewSession(id)
	return map[string]any{"expiration": until}, err
}

func getSessionState(q *broker.Queue, arguments map[string]any) (any, error) {
	id, err := argument[string](arguments, "session-id")
	if err != nil {
		return nil, err
	}
	state, err := q.SessionState(id)
	if state == nil {
		return map[string]any{"session-state": nil}, err
	}
	return map[string]any{"session-state": state}, err
}

func setSessionState(q *broker.Queue, arguments map[string]any) (any, error) {
	id, err := argument[string](arguments, "session-id")
	if err != nil {
		return nil, err
	}
	state, _ := arguments["session-state"].([]byte)
	return map[string]any{}, q.SetSessionState(id, state)
}
