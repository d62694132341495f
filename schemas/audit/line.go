package audit

import (
	"errors"
	"hash/crc32"
)

// crcTail ends every line of a spool, with eight digits in the middle.
const crcTail = `,"crc":"00000000"}`

const hexDigits = "0123456789abcdef"

// castagnoli selects the hardware instruction; the table is never written.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal ends the JSON object that starts at dst[from] as a line of the spool:
// it replaces the closing brace by `,"crc":"xxxxxxxx"}` and a line feed. The
// digits are the CRC-32C (RFC 3720, appendix B.4) of all bytes of the object
// before `,"crc"`. The object must have at least one member.
func Seal(dst []byte, from int) []byte {
	dst = dst[:len(dst)-1]
	sum := crc32.Checksum(dst[from:], castagnoli)
	dst = append(dst, crcTail...)
	d := dst[len(dst)-10:]
	for i := range 8 {
		d[i] = hexDigits[sum>>(28-4*i)&15]
	}
	return append(dst, '\n')
}

// errChecksum means that a line differs from the one written: torn, cut or
// flipped.
var errChecksum = errors.New("line fails its checksum")

// Check reports whether line, without its line feed, ends in the checksum of
// the bytes before it. Checksums detect accidents, not tampering: anyone who
// can write the file can also write a checksum.
func Check(line []byte) bool {
	n := len(line) - len(crcTail)
	if n < 2 || line[0] != '{' || string(line[n:n+8]) != crcTail[:8] || string(line[len(line)-2:]) != crcTail[16:] {
		return false
	}
	sum := crc32.Checksum(line[:n], castagnoli)
	for i, c := range line[n+8 : n+16] {
		if c != hexDigits[sum>>(28-4*i)&15] {
			return false
		}
	}
	return true
}
