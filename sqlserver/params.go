package sqlserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/worker"
)

// textParam binds text so that it seeks on a VARCHAR column. The MAX types
// declare no length, so the text's length does not make plans of its own; the
// statement casts to the column's type. VarCharMax sends bytes as they are,
// hence ASCII only.
func textParam(s string) any {
	if isASCII(s) {
		return mssql.VarCharMax(s)
	}
	return mssql.NVarCharMax(s)
}

// idsJSON is an array of numbers, which OPENJSON reads as BIGINT.
func idsJSON(ids []int64) mssql.VarCharMax {
	b := make([]byte, 0, 2+12*len(ids))
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return mssql.VarCharMax(append(b, ']'))
}

func claimIDsJSON(receipts []worker.Receipt) mssql.VarCharMax {
	b := make([]byte, 0, 2+39*len(receipts))
	b = append(b, '[')
	for i := range receipts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, receipts[i].ID.String()...)
		b = append(b, '"')
	}
	return mssql.VarCharMax(append(b, ']'))
}

func stringsJSON(list []string) mssql.VarCharMax {
	b, err := json.Marshal(list)
	if err != nil {
		panic("a list of strings always marshals: " + err.Error())
	}
	return mssql.VarCharMax(asciiJSON(string(b)))
}

// failure is one row of the JSON that Settle sends.
type failure struct {
	ID      int64  `json:"id"`
	Spend   int    `json:"spend"`
	RetryMS int64  `json:"retry_ms"`
	Error   string `json:"error"`
}

// maxRetryIn keeps retry_ms inside the INT that DATEADD takes: 24 days.
const maxRetryIn = 24 * 24 * time.Hour

func failuresJSON(failed []worker.Failure, lastError column) mssql.VarCharMax {
	list := make([]failure, len(failed))
	for i, f := range failed {
		list[i] = failure{ID: f.ID, Error: fitError(f.Error, lastError)}
		if f.SpendAttempt {
			list[i].Spend = 1
		}
		if f.RetryIn > 0 {
			list[i].RetryMS = max(1, min(f.RetryIn, maxRetryIn).Milliseconds())
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic("failures always marshal: " + err.Error())
	}
	return mssql.VarCharMax(asciiJSON(string(b)))
}

// longestError bounds last_error where the column is MAX.
const longestError = 4000

// fitError makes text fit last_error in any collation: printable ASCII, one
// line, cut to the column. A settlement must never fail on its own error text.
func fitError(text string, c column) string {
	room := c.bytes
	if c.isUnicode() {
		room /= 2
	}
	if c.bytes < 0 {
		room = longestError
	}
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= room {
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r >= 0x20 && r < 0x7f:
			b.WriteByte(byte(r))
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// asciiJSON escapes what is not ASCII, which in valid JSON occurs only inside
// strings, so that the text may be sent as VARCHAR: half the bytes of NVARCHAR.
func asciiJSON(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
