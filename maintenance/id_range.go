package maintenance

import "math"

// idRange are the ids that a type holds.
func idRange(kind string) (lowest, highest int64, ok bool) {
	switch kind {
	case "bigint":
		return math.MinInt64, math.MaxInt64, true
	case "int":
		return math.MinInt32, math.MaxInt32, true
	case "smallint":
		return math.MinInt16, math.MaxInt16, true
	case "tinyint":
		return 0, math.MaxUint8, true
	}
	return 0, 0, false
}
