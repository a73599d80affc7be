package maintenance

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// The text goes out as the bytes of UTF-16: the driver would turn half a
// surrogate pair, which NVARCHAR may hold, into another character.
const migrateSamplesSQL = `SELECT /* outbox:MigrateSamples */ TOP (@limit) e.id,
       CAST(DATALENGTH(n.narrow) AS BIGINT) AS narrow_bytes,
       CASE WHEN @length > 0 AND DATALENGTH(n.narrow) > @length THEN 1 ELSE 0 END AS is_too_long,
       CONVERT(VARBINARY(MAX), LEFT(e.{column}, @chars)) AS wide,
       CONVERT(VARBINARY(MAX), LEFT(b.back, @chars)) AS back
FROM   {events} AS e
CROSS APPLY (SELECT e.{column} COLLATE {collation} AS coded,
                    e.{column} COLLATE Latin1_General_100_BIN2 AS wide) AS k
CROSS APPLY (SELECT CONVERT(VARCHAR(MAX), k.coded) AS narrow) AS n
CROSS APPLY (SELECT CONVERT(NVARCHAR(MAX), n.narrow) COLLATE Latin1_General_100_BIN2 AS back) AS b
WHERE  e.id >= CAST(@from AS {id_t})
AND    e.id <= CAST(@through AS {id_t})
AND    (b.back <> k.wide
        OR DATALENGTH(b.back) <> DATALENGTH(k.wide)
        OR (@length > 0 AND DATALENGTH(n.narrow) > @length))
ORDER BY e.id
OPTION (MAXDOP 1);`

const (
	// sampleChars bounds what is fetched of one value; a difference behind it is
	// counted and not shown.
	sampleChars = 500_000
	// maxLostCharacters is shown of one row.
	maxLostCharacters = 20
)

func (m Migration) readSamples(ctx context.Context, do run, c *migrationColumn, r *MigrationReport, from, through int64, limit int) error {
	return do(m.op("read samples"), func(q querier) error {
		list, err := m.scanSamples(ctx, q, c, from, through, limit)
		if err == nil {
			r.Samples = append(r.Samples, list...)
		}
		return err
	})
}

func (m Migration) scanSamples(ctx context.Context, q querier, c *migrationColumn, from, through int64, limit int) ([]MigrationSample, error) {
	rows, err := q.QueryContext(ctx, m.fill(migrateSamplesSQL, c),
		sql.Named("limit", limit), sql.Named("length", int64(c.toLength)), sql.Named("chars", sampleChars),
		sql.Named("from", from), sql.Named("through", through))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []MigrationSample
	for rows.Next() {
		var id int64
		var s MigrationSample
		var wide, back []byte
		if err := rows.Scan(&id, &s.Bytes, &s.TooLong, &wide, &back); err != nil {
			return nil, err
		}
		s.ID = strconv.FormatInt(id, 10)
		s.Characters = lostCharacters(units(wide), units(back))
		if m.ShowPayload {
			text := string(utf16.Decode(units(wide)))
			s.Payload = &text
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// units are the UTF-16 code units of the bytes of an NVARCHAR.
func units(b []byte) []uint16 {
	list := make([]uint16, len(b)/2)
	for i := range list {
		list[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return list
}

// lostCharacters compares a text with what came back of it. A code page has one
// character for each code unit, so a pair becomes two; under a collation with
// supplementary characters a pair becomes one. What fits neither is not told
// apart, and the list is empty.
func lostCharacters(wide, back []uint16) []LostCharacter {
	was := characters(wide)
	list := []LostCharacter{}
	byUnit, byCharacter := len(wide) == len(back), len(was) == len(back)
	if !byUnit && !byCharacter {
		return list
	}
	seen := make(map[string]int)
	at := 0
	for _, c := range was {
		width := len(c)
		if !byUnit {
			width = 1
		}
		became := back[at : at+width]
		at += width
		if codePoints(c) == codePoints(became) {
			continue
		}
		name := codePoints(c)
		if i, ok := seen[name]; ok {
			list[i].Times++
			continue
		}
		if len(list) == maxLostCharacters {
			continue
		}
		seen[name] = len(list)
		list = append(list, LostCharacter{CodePoint: name, Becomes: codePoints(became), Times: 1})
	}
	return list
}

// characters splits UTF-16 into code points; half a pair is one of its own.
func characters(text []uint16) (list [][]uint16) {
	for i := 0; i < len(text); {
		n := 1
		if i+1 < len(text) && utf16.IsSurrogate(rune(text[i])) && utf16.DecodeRune(rune(text[i]), rune(text[i+1])) != '\uFFFD' {
			n = 2
		}
		list = append(list, text[i:i+n])
		i += n
	}
	return list
}

// codePoints writes them as U+0101, with a space between two.
func codePoints(text []uint16) string {
	out := ""
	for _, c := range characters(text) {
		r := rune(c[0])
		if len(c) == 2 {
			r = utf16.DecodeRune(rune(c[0]), rune(c[1]))
		}
		if out != "" {
			out += " "
		}
		out += fmt.Sprintf("U+%04X", r)
	}
	return out
}
