package main

import "fmt"

// within says what is wrong with a number that a flag may have from least to most;
// nil is nothing.
func within(flag string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d, it may be %d to %d", flag, n, least, most)
	}
	return nil
}
