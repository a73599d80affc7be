package doctor

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/semver"

	"azsqloutbox/maintenance"
)

// workers looks at what the living workers say of themselves.
func (v *visit) workers(ctx context.Context) ([]Finding, error) {
	s, err := maintenance.ReadStatus(ctx, maintenance.Target{DB: v.DB, Names: v.Names, Logger: v.Logger})
	if err != nil {
		return nil, err
	}
	v.report.EventsPerSecond = &s.EventsPerSecond
	live := 0
	for _, w := range s.Workers {
		if w.Live {
			live++
		}
	}
	if faults := s.Faults(); len(faults) > 0 {
		return one("workers", Warn, strings.Join(faults, "; "), "outboxctl status shows them"), nil
	}
	return one("workers", OK, fmt.Sprintf("%d living, %.0f events/s", live, s.EventsPerSecond), ""), nil
}

// Floors are the versions of libraries below which an outbox is not safe.
// go-mssqldb before 1.10 went on, in autocommit, after XACT_ABORT had rolled back
// (its pull request 370); azservicebus before 1.11 did not know the limit of a
// batch from that of a message (its changelog).
var floors = map[string]string{
	"github.com/microsoft/go-mssqldb":                              "v1.10.0",
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus": "v1.11.0",
}

func (v *visit) builds(context.Context) ([]Finding, error) {
	const check = "libraries"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return one(check, Unknown, "this program does not say what it was built of", ""), nil
	}
	var old, fine []string
	for _, m := range info.Deps {
		floor, ok := floors[m.Path]
		if m.Replace != nil {
			m = m.Replace
		}
		switch {
		case !ok:
		case semver.Compare(m.Version, floor) < 0:
			old = append(old, fmt.Sprintf("%s %s is below %s", m.Path, m.Version, floor))
		default:
			fine = append(fine, m.Path[strings.LastIndex(m.Path, "/")+1:]+" "+m.Version)
		}
	}
	if len(old) > 0 {
		return one(check, NoGo, strings.Join(old, ", "), "build with the versions of go.mod"), nil
	}
	return one(check, OK, strings.Join(fine, ", "), ""), nil
}
