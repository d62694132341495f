package printed

import (
	"bytes"

	"auditproxy/redact/names"
)

// A Finder finds them in one text after the other.
type Finder struct {
	Names *names.Classifier // required

	name      names.Folded // the name that is being read
	words     [][]byte     // of the command that is being read, and of those that it is in
	buf       []byte       // words without their quotes
	comment   bool         // the command that is being read may be the comment of a script
	ofProgram bool         // the command that is being read is not one of a shell
	tried     int          // words that may be programs, of the command that is being read
	joined    []byte       // a command that is on several lines
	width     int          // of the screen in code points, 0 if it is not known yet
}

// maxCommand is how long a command is at most, in bytes, that goes on in other lines or is the
// value of a member.
const maxCommand = 2 << 10

// indentOf returns how much white space a line starts with, in bytes.
func indentOf(line []byte) int {
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return n
}

// lineEnd returns the end of the line that t[i] is in.
func lineEnd(t []byte, i int) int {
	if n := bytes.IndexByte(t[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(t)
}
