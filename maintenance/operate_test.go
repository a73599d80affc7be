package maintenance

import (
	"maps"
	"strings"
)

func init() {
	maps.Copy(kinds, map[string]string{
		"controlStateSQL":    "Select",
		"setControlSQL":      "Declare BeginTransaction Update If(Insert) CommitTransaction Select",
		"listFailedSQL":      "Select",
		"showFailedSQL":      "Select",
		"countFailedSQL":     "Select",
		"takeFailedSQL":      "DeclareTableVariable Declare Declare Insert Set If(Update Update) Select",
		"lastErrorColumnSQL": "Select",
		"listSettledSQL":     "Select",
		"workersSQL":         "Declare Select Select",
		"receiptsSQL":        "Declare Select",
		"pausesSQL":          "Select",
		"failedByTypeSQL":    "Select",
	})
	filtered := func(text string) []string {
		text = strings.ReplaceAll(text, "{failed_filter}", failedFilter)
		return []string{
			strings.ReplaceAll(text, "{failed_between}", betweenParked),
			strings.ReplaceAll(text, "{failed_between}", betweenWaiting),
		}
	}
	for _, name := range []string{"listFailedSQL", "listSettledSQL", "countFailedSQL", "takeFailedSQL"} {
		renderings[name] = filtered
	}
}
