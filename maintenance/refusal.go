package maintenance

import (
	"errors"
	"fmt"
)

// ErrSetting is in errors of a setting that cannot be in view of this database
// (a retention below twice the lease of its workers); nothing was changed.
var ErrSetting = errors.New("setting refused")

// Refusal says that a task found something that forbids it, and what to do about
// it. It looks before it changes anything; what shows up on the way ends it there.
type Refusal struct {
	// Task is what was asked for; Found is what stands against it; Remedy is
	// what a person can do.
	Task, Found, Remedy string
	// Done is what was done before it was found; empty for nothing.
	Done string
}

func (r *Refusal) Error() string {
	if r.Done != "" {
		return fmt.Sprintf("%s stopped, %s: %s; %s", r.Task, r.Done, r.Found, r.Remedy)
	}
	return fmt.Sprintf("%s refused, nothing was changed: %s; %s", r.Task, r.Found, r.Remedy)
}
