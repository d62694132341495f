//go:build !amd64 || portable

package jsontext

import "encoding/binary"

// plain returns how many bytes at the start of b are certainly neither a quote,
// a backslash, a control character nor above 0x7F.
func plain(b []byte) int {
	i := 0
	for ; i+32 <= len(b); i += 32 {
		w := b[i : i+32 : i+32]
		// One of the two keeps the top bit of a byte above 0x7F.
		var found uint64
		for j := 0; j < 32; j += 8 {
			x := binary.LittleEndian.Uint64(w[j:])
			found |= hits(x)
		}
		if found&tops != 0 {
			break
		}
	}
	return i
}
