package evidencetest

import (
	"bytes"
	"regexp"
	"strconv"

	"auditproxy/schemas/audit"
)

// seal gives a line the checksum of what it says now. A writer of records can do
// that.
func seal(line []byte) []byte {
	const tail = len(`,"crc":"00000000"}`)
	body := append(bytes.Clone(line[:len(line)-tail]), '}')
	return bytes.TrimSuffix(audit.Seal(body, 0), []byte("\n"))
}

// replace replaces a part of a line, and seals it.
func replace(line []byte, old, new string) []byte {
	return seal(bytes.Replace(line, []byte(old), []byte(new), 1))
}

var seqMember = regexp.MustCompile(`"seq":[0-9]+,`)

// renumber gives a line another seq.
func renumber(line []byte, seq int) []byte {
	return replace(line, string(seqMember.Find(line)), `"seq":`+strconv.Itoa(seq)+",")
}

// edit changes the time of a record by a digit of its microseconds.
func edit(line []byte) []byte {
	i := bytes.Index(line, []byte(`"ts":"`)) + len(`"ts":"2026-11-20T09:14:03.12345`)
	changed := bytes.Clone(line)
	changed[i] = '0' + (changed[i]-'0'+1)%10
	return seal(changed)
}
