package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// The full compatibility matrix of the transaction locking and row versioning
// guide, without key ranges and bulk update. C is a conflict.
func TestLockCompatibility(t *testing.T) {
	modes := []storage.LockMode{
		storage.SchS, storage.SchM, storage.S, storage.U, storage.X, storage.IS,
		storage.IU, storage.IX, storage.SIU, storage.SIX, storage.UIX,
	}
	matrix := []string{
		".C.........",
		"CCCCCCCCCCC",
		".C..C..C.CC",
		".C.CC.CCCCC",
		".CCCCCCCCCC",
		".C..C......",
		".C.CC.....C",
		".CCCC...CCC",
		".C.CC..C.CC",
		".CCCC..CCCC",
		".CCCC.CCCCC",
	}
	db := storage.New()
	holder, other := db.NewSession(), db.NewSession()
	defer holder.Close()
	defer other.Close()
	for i, held := range modes {
		for j, asked := range modes {
			if _, err := holder.AppLock(t.Context(), "r", held, 0); err != nil {
				t.Fatal(err)
			}
			_, err := other.AppLock(t.Context(), "r", asked, 0)
			if conflict := matrix[i][j] == 'C'; conflict != errors.Is(err, storage.ErrLockTimeout) {
				t.Errorf("%v asked while %v is held: %v, conflict expected: %v", asked, held, err, conflict)
			}
			if err == nil {
				if err := other.AppUnlock("r"); err != nil {
					t.Fatal(err)
				}
			}
			if err := holder.AppUnlock("r"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLockModeString(t *testing.T) {
	for mode, want := range map[storage.LockMode]string{
		0: "NL", storage.SchS: "Sch-S", storage.SchM: "Sch-M", storage.SchS | storage.IX: "IX",
		storage.S: "S", storage.U | storage.S: "U", storage.X | storage.U: "X",
		storage.IS | storage.IX: "IX", storage.S | storage.IX: "SIX", storage.UIX: "UIX", storage.SIU: "SIU",
	} {
		if got := mode.String(); got != want {
			t.Errorf("mode %08b is %q, want %q", uint8(mode), got, want)
		}
	}
}
