//go:build linux || darwin

package chdb

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A library is the loaded libchdb. Handles are C pointers, which point to no
// Go memory, and each is used by one goroutine at a time.
type library struct {
	setSignalHandlers func(enabled int32)

	connect func(argc int32, argv **byte) *uintptr // nil: refused; the reason is on standard error only
	close   func(conn *uintptr)

	query        func(conn uintptr, sql *byte, n uint64, format *byte, fn uint64) uintptr
	streamQuery  func(conn uintptr, sql *byte, n uint64, format *byte, fn uint64, names **byte, nameLens *uint64, values **byte, valueLens *uint64, count uint64) uintptr
	streamFetch  func(conn, stream uintptr) uintptr
	streamCancel func(conn, stream uintptr)

	insert        func(conn uintptr, sql *byte, n uint64, format *byte, fn uint64) uintptr
	insertAppend  func(stream uintptr, data *byte, n uint64) int32
	insertError   func(stream uintptr) string
	insertDone    func(stream uintptr) uintptr
	insertCancel  func(stream uintptr)
	insertDestroy func(stream uintptr)

	classify func(conn uintptr, sql *byte, n uint64, database *byte, dn uint64, c *classification) int32

	resultBuffer  func(result uintptr) *byte
	resultLength  func(result uintptr) uint64
	resultError   func(result uintptr) string
	resultDestroy func(result uintptr)

	version func() string
}

// A classification is the result of the engine's own parser.
type classification struct {
	size       uint32 // of this struct, set by the caller
	statements uint32
	_          uint32 // flags
	class      uint32
}

// The classes used here. Others change more than data, or are unknown.
const (
	classRead   = 0
	classChange = 1
)

// load loads the library and restores Go's signal handlers: with the
// library's own for SIGSEGV and the like a nil dereference in Go hangs the
// process. It must precede the first connection.
func load(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading %q: %w", path, err)
	}
	l := new(library)
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &l.setSignalHandlers,
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.close,
		"chdb_query_n":                     &l.query,
		"chdb_stream_query_with_params_n":  &l.streamQuery,
		"chdb_stream_fetch_result":         &l.streamFetch,
		"chdb_stream_cancel_query":         &l.streamCancel,
		"chdb_stream_insert_n":             &l.insert,
		"chdb_stream_append":               &l.insertAppend,
		"chdb_stream_insert_error":         &l.insertError,
		"chdb_stream_done":                 &l.insertDone,
		"chdb_stream_cancel_insert":        &l.insertCancel,
		"chdb_destroy_insert_stream":       &l.insertDestroy,
		"chdb_classify_query_n":            &l.classify,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_destroy_query_result":        &l.resultDestroy,
		"chdb_version":                     &l.version,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("loading %q: it has no %s: want libchdb %s or newer", path, name, Version)
		}
		purego.RegisterFunc(fn, symbol)
	}
	l.setSignalHandlers(0)
	return l, nil
}

// take copies the contents of a result and destroys it.
func (l *library) take(result uintptr) (out []byte, err error) {
	err = l.show(result, func(data []byte) error {
		out = append(out, data...)
		return nil
	})
	return out, err
}

// show calls f with the contents of a result, valid until f returns, and
// destroys it.
func (l *library) show(result uintptr, f func(data []byte) error) error {
	if result == 0 {
		return exceptionf(codeUnknown, "the engine gave no result")
	}
	defer l.resultDestroy(result)
	if text := l.resultError(result); text != "" {
		return newException(text)
	}
	if n := l.resultLength(result); n > 0 {
		return f(unsafe.Slice(l.resultBuffer(result), n))
	}
	return nil
}

// arguments are strings for C: pointers and lengths. The library copies what
// it keeps, so they must live for one call only.
type arguments struct {
	pointers []*byte
	lengths  []uint64
}

func newArguments(texts []string, terminated bool) arguments {
	a := arguments{make([]*byte, len(texts)+1), make([]uint64, len(texts)+1)}
	for i, s := range texts {
		b := []byte(s)
		if terminated || len(b) == 0 {
			b = append(b, 0)
		}
		a.pointers[i], a.lengths[i] = &b[0], uint64(len(s))
	}
	return a
}

func (a arguments) keepAlive() { runtime.KeepAlive(a.pointers) }

func pointer(s string) (*byte, uint64) { return unsafe.StringData(s), uint64(len(s)) }
