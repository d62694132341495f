// Command steps counts, for each line of its input, the blocks of statements that the
// redactor runs for a text. A line is a size and a quoted unit, which is repeated up to
// that size. It is built with -cover and -covermode=atomic.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/coverage"
	"strings"

	"auditproxy/redact"
)

func main() {
	r, err := redact.New(redact.Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		log.Fatal(err)
	}
	for {
		var size int
		var unit string
		if _, err := fmt.Scanf("%d %q\n", &size, &unit); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		text := strings.Repeat(unit, size/len(unit))
		args := fmt.Appendf(nil, `{"a":%q,"b":[%q],"c":%q}`, text, text, `password="x" AKIAIOSFODNN7EXAMPLE %41 `+text)
		if err := coverage.ClearCounters(); err != nil {
			log.Fatal(err)
		}
		r.AppendText(nil, []byte(text))
		r.AppendArgs(nil, args)
		steps, err := counted()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintln(os.Stdout, steps)
	}
}

// counted returns the sum of the counters. Go's internal/coverage describes their form:
// a header of 32 bytes, one of 16 with the sizes of two tables after it, then for each
// function three numbers and its counters.
func counted() (sum uint64, err error) {
	var b bytes.Buffer
	if err := coverage.WriteCounters(&b); err != nil {
		return 0, err
	}
	le, data := binary.LittleEndian, b.Bytes()
	if version, form := le.Uint32(data[4:]), data[24]; version != 1 || form != 2 {
		return 0, fmt.Errorf("counters of version %d in the form %d, want 1 and 2", version, form)
	}
	functions, tables := le.Uint64(data[32:]), le.Uint32(data[40:])+le.Uint32(data[44:])
	data = data[48+tables:]
	next := func() uint64 {
		v, n := binary.Uvarint(data)
		data = data[n:]
		return v
	}
	for range functions {
		counters := next()
		next() // the package's number
		next() // the function's
		for range counters {
			sum += next()
		}
	}
	return sum, nil
}
