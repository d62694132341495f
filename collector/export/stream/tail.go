package stream

import (
	"bytes"
	"errors"
	"io"
)

// fileBytes is what one sync makes durable. After a power cut, nothing that is
// further from the end of the file can be damaged.
const fileBytes = 4 << 20

// A lineReader is a file that is read from its end.
type lineReader interface {
	ReadAt(p []byte, off int64) (int, error)
}

// wholeLines returns the size of the part of a file that is whole lines. The rest
// is what a crash left: a part of an event, or, after a power cut, blocks that
// were never written and are zero. Both are within a batch from the end, which may
// be one event that is longer. It returns an error where the end is something else,
// which is not to be removed.
func wholeLines(f lineReader, size int64) (int64, error) {
	const most = 2 * fileBytes
	from := max(0, size-most)
	end := make([]byte, size-from)
	if n, err := f.ReadAt(end, from); err != nil && !(errors.Is(err, io.EOF) && n == len(end)) {
		return 0, err
	}
	whole := end
	if i := bytes.IndexByte(end, 0); i >= 0 { // no event has one
		whole = end[:i]
	}
	last := bytes.LastIndexByte(whole, '\n') + 1
	if last == 0 && from > 0 {
		return 0, errors.New("its end is not lines of events: name another file")
	}
	if rest := end[last:]; len(rest) > 0 && rest[0] != '{' && rest[0] != 0 {
		return 0, errors.New("its last line is not an event: name another file")
	}
	return from + int64(last), nil
}
