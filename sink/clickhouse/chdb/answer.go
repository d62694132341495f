//go:build linux || darwin

package chdb

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// maxStall is how long a client may take for a chunk of its answer. A query
// whose answer nobody takes holds memory of the engine.
const maxStall = time.Minute

// An answer is what a client gets. Its status line waits for the first chunk,
// because a statement that fails before it gets another.
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

// chunk sends a part of the answer as the engine gave it.
func (a *answer) chunk(data []byte) error {
	if !strings.EqualFold(a.format, "Native") || a.revision == 0 {
		return a.send(data)
	}
	return a.reencode(data)
}

// reencode sends the engine's blocks, which are of revision 0, as those of the
// client's revision. A chunk holds whole blocks. Each column is sent before the
// next is encoded: a block may have many megabytes.
func (a *answer) reencode(data []byte) error {
	in := chproto.NewReader(bytes.NewReader(data))
	var out chproto.Buffer
	for {
		block := proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
		switch err := block.Decode(in, 0); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return notNative(err)
		case block.Rows() == 0:
			// A client reads what comes before the values only if there are any.
			continue
		}
		if err := block.EncodeHeader(&out, a.revision); err != nil {
			return notNative(err)
		}
		for i := range block.Columns {
			if err := block.EncodeColumn(&out, a.revision, i); err != nil {
				return notNative(err)
			}
			if err := a.send(out.Buf); err != nil {
				return err
			}
			out.Reset()
		}
	}
}

func notNative(err error) error {
	return exceptionf(codeUnknown, "this answer cannot be sent in the native format: %v", err)
}

// frame is how much is compressed at a time.
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

// errGone is returned once the client takes no more.
var errGone = errors.New("the client is gone")

func (a *answer) write(data []byte) error {
	control := http.NewResponseController(a.w)
	if err := control.SetWriteDeadline(time.Now().Add(maxStall)); err != nil {
		return errGone
	}
	if _, err := a.w.Write(data); err != nil {
		return errGone
	}
	if err := control.Flush(); err != nil {
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

// end ends the answer, which may have been empty or have failed half way.
func (a *answer) end(err error) {
	switch {
	case err == nil:
		a.start()
	case errors.Is(err, errGone):
	case !a.started:
		writeException(a.w, err)
	default:
		// As the server does it: after a mark that no data contains. It is never
		// compressed, or a client would have to guess where frames end.
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
	_, _ = io.WriteString(w, err.Error()+"\n") // who does not take it is gone
}
