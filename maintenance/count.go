package maintenance

import "fmt"

// Count is a number of things for people: 1 event, 2 events.
func Count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
