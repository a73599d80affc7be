package maintenance

import (
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

func TestLostCharacters(t *testing.T) {
	pair := utf16.Encode([]rune("😀"))
	for name, c := range map[string]struct {
		wide, back []uint16
		want       []LostCharacter
	}{
		"nothing":            {units16("abc"), units16("abc"), []LostCharacter{}},
		"a look-alike twice": {units16("āxā"), units16("axa"), []LostCharacter{{"U+0101", "U+0061", 2}}},
		"a pair of two":      {units16("a😀b"), units16("a??b"), []LostCharacter{{"U+1F600", "U+003F U+003F", 1}}},
		"a pair of one":      {units16("a😀bā"), units16("a?ba"), []LostCharacter{{"U+1F600", "U+003F", 1}, {"U+0101", "U+0061", 1}}},
		"half a pair":        {[]uint16{'a', pair[0]}, []uint16{'a', 0xFFFD}, []LostCharacter{{"U+D83D", "U+FFFD", 1}}},
		"halves the wrong way round": {
			[]uint16{pair[1], pair[0]},
			[]uint16{0xFFFD, 0xFFFD},
			[]LostCharacter{{"U+DE00", "U+FFFD", 1}, {"U+D83D", "U+FFFD", 1}},
		},
		"lengths that fit nothing": {units16("abc"), units16("ab"), []LostCharacter{}},
		"empty":                    {nil, nil, []LostCharacter{}},
	} {
		if diff := cmp.Diff(c.want, lostCharacters(c.wide, c.back)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLostCharactersAreBounded(t *testing.T) {
	var wide, back []uint16
	for r := rune(0x4E00); r < 0x4E00+100; r++ {
		wide, back = append(wide, uint16(r)), append(back, '?')
	}
	if got := len(lostCharacters(wide, back)); got != maxLostCharacters {
		t.Errorf("%d characters, want %d", got, maxLostCharacters)
	}
}

func units16(s string) []uint16 { return utf16.Encode([]rune(s)) }
