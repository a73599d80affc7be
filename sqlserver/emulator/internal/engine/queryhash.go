package engine

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// queryHash is the same for statements that differ by their literals, white
// space and comments only.
func queryHash(text string) string {
	h := fnv.New64a()
	g := guard{text: text}
	for g.next() {
		token := strings.ToUpper(g.token)
		if c := token[0]; c == '\'' || (c >= '0' && c <= '9') {
			token = "?"
		}
		h.Write([]byte(token))
		h.Write([]byte{0})
	}
	return hashBytes(h.Sum64())
}

func hashBytes(n uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, n))
}
