//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowSize is that of a terminal, in characters; 0 where it is not known.
func windowSize(f *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
