//go:build linux || darwin

package chdb

import (
	"errors"
	"runtime"
	"unsafe"
)

// A conn is one connection to the engine, with its own settings, current
// database and temporary tables. One goroutine at a time uses it.
type conn struct {
	lib    *library
	handle *uintptr
}

var errRefused = errors.New("the engine refused the connection; see its message above")

// open opens a connection with command-line settings. An unknown name is
// silently accepted here, so a client's settings go through SET.
func (l *library) open(dir string, settings ...string) (*conn, error) {
	argv := newArguments(append([]string{"clickhouse", "--path=" + dir}, settings...), true)
	defer argv.keepAlive()
	handle := l.connect(int32(len(argv.pointers)-1), &argv.pointers[0])
	if handle == nil {
		return nil, errRefused
	}
	return &conn{l, handle}, nil
}

func (c *conn) close() { c.lib.close(c.handle) }

// query runs a statement whose whole answer is small. A connection is
// unusable after one failed in mid-output: its rows would precede those of
// the next.
func (c *conn) query(sql, format string) ([]byte, error) {
	s, n := pointer(sql)
	f, fn := pointer(format)
	out, err := c.lib.take(c.lib.query(*c.handle, s, n, f, fn))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	return out, err
}

// classify classifies a text with the engine's own parser.
func (c *conn) classify(sql string) (classification, bool) {
	v := classification{size: uint32(unsafe.Sizeof(classification{}))}
	s, n := pointer(sql)
	d, dn := pointer("default")
	code := c.lib.classify(*c.handle, s, n, d, dn, &v)
	runtime.KeepAlive(sql)
	return v, code == 0
}

// A param is a query parameter or a setting. A parameter's value is escaped as
// in TSV, as HTTP clients send it.
type param struct{ name, value string }

// A selection is a running SELECT.
type selection struct {
	c      *conn
	stream uintptr
}

// stream starts a SELECT, whose answer arrives in chunks of whole blocks.
func (c *conn) stream(sql, format string, params []param) (*selection, error) {
	names, values := make([]string, len(params)), make([]string, len(params))
	for i, p := range params {
		names[i], values[i] = p.name, p.value
	}
	na, va := newArguments(names, false), newArguments(values, false)
	defer na.keepAlive()
	defer va.keepAlive()
	s, n := pointer(sql)
	f, fn := pointer(format)
	stream := c.lib.streamQuery(*c.handle, s, n, f, fn, &na.pointers[0], &na.lengths[0], &va.pointers[0], &va.lengths[0], uint64(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	if stream == 0 {
		return nil, exceptionf(codeUnknown, "the engine gave no stream")
	}
	if text := c.lib.resultError(stream); text != "" {
		c.lib.resultDestroy(stream)
		return nil, newException(text)
	}
	return &selection{c, stream}, nil
}

// each calls f with the chunks of the answer, which are valid until f
// returns.
func (s *selection) each(f func(data []byte) error) error {
	for more := true; more; {
		more = false
		err := s.c.lib.show(s.c.lib.streamFetch(*s.c.handle, s.stream), func(data []byte) error {
			more = true
			return f(data)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *selection) close() {
	s.c.lib.streamCancel(*s.c.handle, s.stream)
	s.c.lib.resultDestroy(s.stream)
}

// An insertion is a running INSERT whose data is being sent. However it is
// split, it is one insert with one deduplication token.
type insertion struct {
	c      *conn
	stream uintptr
}

// insert starts an INSERT that names no format.
func (c *conn) insert(sql, format string) (*insertion, error) {
	s, n := pointer(sql)
	f, fn := pointer(format)
	stream := c.lib.insert(*c.handle, s, n, f, fn)
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	if stream == 0 {
		return nil, exceptionf(codeUnknown, "the engine gave no stream")
	}
	if text := c.lib.insertError(stream); text != "" {
		c.lib.insertDestroy(stream)
		return nil, newException(text)
	}
	return &insertion{c, stream}, nil
}

// append sends data, which may be cut anywhere.
func (i *insertion) append(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if i.c.lib.insertAppend(i.stream, &data[0], uint64(len(data))) == 0 {
		return nil
	}
	text := i.c.lib.insertError(i.stream)
	if text == "" {
		return exceptionf(codeUnknown, "the engine took no more data")
	}
	return newException(text)
}

// done ends the data and returns once all of it is stored; after an error
// none of it is.
func (i *insertion) done() error {
	_, err := i.c.lib.take(i.c.lib.insertDone(i.stream))
	i.c.lib.insertDestroy(i.stream)
	return err
}

// cancel ends the insert; nothing of it is stored.
func (i *insertion) cancel() {
	i.c.lib.insertCancel(i.stream)
	i.c.lib.insertDestroy(i.stream)
}
