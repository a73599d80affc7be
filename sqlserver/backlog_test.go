package sqlserver

import (
	"fmt"
	"slices"
	"testing"

	"azsqloutbox/worker"
)

func TestCountsAreBoundedTogether(t *testing.T) {
	const most, all = worker.BacklogCountCap, 100_000
	deep := func(n int) []int64 { return slices.Repeat([]int64{1_000_000}, n) }
	for name, c := range map[string]struct {
		waits, want []int64
		passes      int
	}{
		"nothing":                {[]int64{0}, []int64{0}, 1},
		"few deep types":         {[]int64{most + 1, 5, most}, []int64{most, 5, most}, 1},
		"a hundred deep types":   {deep(100), slices.Repeat([]int64{all / 100}, 100), 1},
		"one deep of a hundred":  {append(make([]int64, 99), 1_000_000), append(make([]int64, 99), most), 2},
		"twenty deep of 200":     {append(make([]int64, 180), deep(20)...), append(make([]int64, 180), slices.Repeat([]int64{(all - 20*500) / 20}, 20)...), 2},
		"more types than counts": {deep(all + 1), slices.Repeat([]int64{1}, all+1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			waits := make(map[string]int64)
			var types []string
			for i, n := range c.waits {
				types = append(types, fmt.Sprint(i))
				waits[types[i]] = n
			}
			passes := 0
			counts, err := countTypes(types, all, func(types []string, limit int) (list []worker.TypeBacklog, err error) {
				passes++
				for _, name := range types {
					n := min(waits[name], int64(limit))
					list = append(list, worker.TypeBacklog{EventType: name, Pending: n, Capped: n == int64(limit)})
				}
				return list, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range counts {
				if got.EventType != types[i] || got.Pending != c.want[i] || got.Capped != (got.Pending > 0 && got.Pending != 5) {
					t.Fatalf("type %d of %d: %+v, want %d", i, c.waits[i], got, c.want[i])
				}
			}
			if len(counts) != len(types) || passes != c.passes {
				t.Errorf("%d counts of %d types in %d passes, want %d", len(counts), len(types), passes, c.passes)
			}
		})
	}
}
