package sqlserver_test

import (
	"testing"

	"azsqloutbox/sqlserver"
)

func TestEditionsWithOnlineOperations(t *testing.T) {
	for engine, want := range map[int]bool{2: false, 3: true, 4: false, 5: true, 8: true, 9: false, 12: true} {
		if got := (sqlserver.Edition{Engine: engine}).Online(); got != want {
			t.Errorf("engine edition %d: %v, want %v", engine, got, want)
		}
	}
}
