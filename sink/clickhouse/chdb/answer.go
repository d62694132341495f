//go:build linux || darwin

package chdb

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
)

// maxStall is the limit on a client's read of a chunk. An unread answer holds
// memory of the engine.
const maxStall = time.Minute

// An answer is the response to a client. Its status line waits for the first
// chunk, because a statement that fails before it needs another status.
type answer struct {
	w        http.ResponseWriter
	format   string
	revision uint64 // of the client's native protocol
	frames   *compress.Writer
	tag      string // marks an exception after the status line; unguessable, so that no record holds one
	started  bool
}

func newAnswer(w http.ResponseWriter, q request, format string) *answer {
	a := &answer{w: w, format: format, revision: q.revision, tag: strings.ToLower(rand.Text()[:16])}
	if q.compress != nil {
		a.frames = compress.NewWriter(compress.LevelZero, *q.compress)
	}
	return a
}

// chunk sends a part of the answer as received from the engine.
func (a *answer) chunk(data []byte) error {
	var err error
	if strings.EqualFold(a.format, "Native") && a.revision > 0 {
		err = translate(data, a.revision, a.send)
	} else {
		err = a.send(data)
	}
	if err == nil && http.NewResponseController(a.w).Flush() != nil {
		err = errGone
	}
	return err
}

// frame is the number of bytes compressed at a time.
const frame = 1 << 20

func (a *answer) send(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	a.start()
	if a.frames == nil {
		return a.write(data)
	}
	for len(data) > 0 {
		n := min(len(data), frame)
		if err := a.frames.Compress(data[:n]); err != nil {
			return exceptionf(codeUnknown, "compressing: %v", err)
		}
		if err := a.write(a.frames.Data); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// errGone is returned once the client stops reading.
var errGone = errors.New("the client is gone")

func (a *answer) write(data []byte) error {
	if err := http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(maxStall)); err != nil {
		return errGone
	}
	if _, err := a.w.Write(data); err != nil {
		return errGone
	}
	return nil
}

func (a *answer) start() {
	if a.started {
		return
	}
	a.started = true
	h := a.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-ClickHouse-Format", a.format)
	h.Set("X-ClickHouse-Exception-Tag", a.tag)
}

// end ends the answer, which may be empty or incomplete.
func (a *answer) end(err error) {
	switch {
	case err == nil:
		a.start()
	case errors.Is(err, errGone):
	case !a.started:
		writeException(a.w, err)
	default:
		// As the server does: after a mark that no data contains, and never
		// compressed, or a client would have to guess the end of frames.
		text := err.Error()
		_ = a.write(fmt.Appendf(nil, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", a.tag, text, len(text)+1, a.tag))
	}
}

// writeException sends an error in place of an answer.
func writeException(w http.ResponseWriter, err error) {
	code, status := codeUnknown, http.StatusInternalServerError
	var e *exception
	if errors.As(err, &e) {
		code = e.code
	}
	switch code {
	case codeBadArguments, codeSyntax, codeUnknownSetting:
		status = http.StatusBadRequest
	case codeReadonly:
		status = http.StatusForbidden
	case codeAuthentication:
		status = http.StatusUnauthorized
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, err.Error()+"\n") // a client that does not read it has gone
}
