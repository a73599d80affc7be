package storage

import (
	"fmt"
)

// LockMode is a set of basic lock modes. A lock that covers several at once
// (SIX) is their union: a conversion adds bits, and two locks conflict when any
// two of their bits do. That gives the full compatibility matrix of the
// transaction locking and row versioning guide, combined modes included.
type LockMode uint8

const (
	SchS LockMode = 1 << iota // schema stability: keeps Sch-M away
	IS                        // intent shared
	IU                        // intent update
	IX                        // intent exclusive
	S                         // shared
	U                         // update: compatible with S, not with another U
	X                         // exclusive
	SchM                      // schema modification: conflicts with everything

	SIU = S | IU
	SIX = S | IX
	UIX = U | IX
)

// conflicting holds, for every set of modes, all basic modes that conflict
// with one of them.
var conflicting = func() (all [256]LockMode) {
	basic := map[LockMode]LockMode{
		SchS: SchM,
		IS:   X | SchM,
		IU:   U | X | SchM,
		IX:   S | U | X | SchM,
		S:    IX | X | SchM,
		U:    IU | IX | U | X | SchM,
		X:    IS | IU | IX | S | U | X | SchM,
		SchM: SchS | IS | IU | IX | S | U | X | SchM,
	}
	for set := range all {
		for mode, with := range basic {
			if LockMode(set)&mode != 0 {
				all[set] |= with
			}
		}
	}
	return all
}()

// conflicts says whether two sessions cannot hold m and o at once.
func (m LockMode) conflicts(o LockMode) bool { return conflicting[m]&o != 0 }

// covers says whether holding m keeps away all that holding o would.
func (m LockMode) covers(o LockMode) bool { return conflicting[o]&^conflicting[m] == 0 }

// String is the name that request_mode of sys.dm_tran_locks shows.
func (m LockMode) String() string {
	switch {
	case m == 0:
		return "NL"
	case m&SchM != 0:
		return "Sch-M"
	case m&X != 0:
		return "X"
	}
	// What a stronger bit implies is not shown: an U lock on a row was an S lock
	// before.
	shown := m &^ SchS
	for _, weaker := range []struct{ by, hidden LockMode }{{U, S | IS | IU}, {S, IS}, {IX, IS | IU}, {IU, IS}} {
		if shown&weaker.by != 0 {
			shown &^= weaker.hidden
		}
	}
	names := map[LockMode]string{
		0: "Sch-S", IS: "IS", IU: "IU", IX: "IX", S: "S", U: "U",
		SIU: "SIU", SIX: "SIX", UIX: "UIX",
	}
	if name, ok := names[shown]; ok {
		return name
	}
	return fmt.Sprintf("LockMode(%d)", uint8(m))
}
