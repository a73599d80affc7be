package maintenance

import "fmt"

// ByteText is a number of bytes for people: 58.1 GB, of 1,024 each.
func ByteText(n int64) string {
	const unit = 1024
	switch v := float64(n); {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.0f KB", v/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%.1f MB", v/unit/unit)
	default:
		return fmt.Sprintf("%.1f GB", v/unit/unit/unit)
	}
}
