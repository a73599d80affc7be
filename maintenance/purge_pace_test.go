package maintenance

import (
	"testing"
	"time"
)

func TestPacerNext(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		p    pacer
		from pace
		s    signs
		want pace
	}{
		{"a quick batch at full size stays", pacer{2000, 20 * ms}, pace{2000, 20 * ms}, signs{took: 50 * ms}, pace{2000, 20 * ms}},
		{"a quick small batch grows by an eighth", pacer{2000, 20 * ms}, pace{500, 20 * ms}, signs{took: 50 * ms}, pace{750, 20 * ms}},
		{"near the target nothing moves", pacer{2000, 20 * ms}, pace{500, 20 * ms}, signs{took: 200 * ms}, pace{500, 20 * ms}},
		{"over the target a quarter less", pacer{2000, 20 * ms}, pace{2000, 20 * ms}, signs{took: 300 * ms}, pace{1500, 20 * ms}},
		{"far over it half", pacer{2000, 20 * ms}, pace{2000, 20 * ms}, signs{took: 2 * time.Second}, pace{1000, 20 * ms}},
		{"never below the least", pacer{2000, 20 * ms}, pace{120, 20 * ms}, signs{took: 2 * time.Second}, pace{100, 20 * ms}},
		{"a small setting is the least itself", pacer{30, 0}, pace{30, 0}, signs{took: 2 * time.Second}, pace{30, 0}},
		{"a window with nothing to delete says nothing of size", pacer{2000, 20 * ms}, pace{500, 20 * ms}, signs{}, pace{500, 20 * ms}},
		{"contention: half the rows, twice the pause", pacer{2000, 40 * ms}, pace{2000, 40 * ms}, signs{took: 50 * ms, contended: true}, pace{1000, 80 * ms}},
		{"contention without a pause begins one", pacer{2000, 0}, pace{2000, 0}, signs{contended: true}, pace{1000, 50 * ms}},
		{"calm brings the pause back", pacer{2000, 20 * ms}, pace{2000, 400 * ms}, signs{took: 50 * ms}, pace{2000, 300 * ms}},
		{"to what was asked for", pacer{2000, 20 * ms}, pace{2000, 22 * ms}, signs{took: 50 * ms}, pace{2000, 20 * ms}},
		{"and to none", pacer{2000, 0}, pace{2000, ms}, signs{took: 50 * ms}, pace{2000, 0}},
		{"short of log: as long as the batch took", pacer{2000, 20 * ms}, pace{2000, 20 * ms}, signs{took: 240 * ms, news: true, short: true}, pace{2000, 240 * ms}},
		{"short of log again: twice that", pacer{2000, 20 * ms}, pace{2000, 240 * ms}, signs{took: 240 * ms, news: true, short: true}, pace{2000, 480 * ms}},
		{"until the next look it stays so", pacer{2000, 20 * ms}, pace{2000, 480 * ms}, signs{took: 240 * ms, short: true}, pace{2000, 480 * ms}},
		{"there is a longest pause", pacer{2000, 20 * ms}, pace{2000, 4 * time.Second}, signs{took: 240 * ms, news: true, short: true}, pace{2000, 5 * time.Second}},
		{"but never a shorter one than asked for", pacer{2000, 20 * time.Second}, pace{2000, 20 * time.Second}, signs{news: true, short: true}, pace{2000, 20 * time.Second}},
		{"good news is calm", pacer{2000, 20 * ms}, pace{2000, 400 * ms}, signs{took: 50 * ms, news: true}, pace{2000, 300 * ms}},
	} {
		if got := c.p.next(c.from, c.s); got != c.want {
			t.Errorf("%s: %+v after %+v: %+v, want %+v", c.name, c.from, c.s, got, c.want)
		}
	}
}

// Whatever comes, the pace stays inside its bounds, and calm brings it back.
func FuzzPacer(f *testing.F) {
	f.Add(2000, int64(20), []byte{0, 1, 2, 3, 255})
	f.Add(1, int64(0), []byte{7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, rows int, pauseMS int64, steps []byte) {
		p := pacer{maxRows: 1 + abs(rows)%2000, minPause: time.Duration(abs(pauseMS)%60000) * time.Millisecond}
		c := p.start()
		for _, b := range steps {
			c = p.next(c, signs{took: time.Duration(b>>3) * 40 * time.Millisecond, contended: b&1 != 0, news: b&2 != 0, short: b&4 != 0})
			if c.rows < min(minRows, p.maxRows) || c.rows > p.maxRows || c.pause < p.minPause || c.pause > max(p.minPause, longestPause) {
				t.Fatalf("%+v is outside of %+v", c, p)
			}
		}
		for range 100 {
			c = p.next(c, signs{took: time.Millisecond})
		}
		if c != p.start() {
			t.Fatalf("calm ends at %+v, want %+v", c, p.start())
		}
	})
}

func abs[T int | int64](n T) T {
	if n < 0 {
		return max(0, -(n + 1))
	}
	return n
}
