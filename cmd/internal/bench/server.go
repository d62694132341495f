package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

// headLen is how many bytes of a line the server reads.
const headLen = 256

// answers of the server; the id goes in front.
const (
	initializeResult = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}` + "\n"
	toolsResult      = `"result":{"tools":[` +
		`{"name":"send_keys","description":"Send keys to a pane.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false},"_meta":{"_fastmcp":{"tags":["mutating"]}}},` +
		`{"name":"capture_pane","description":"Read a pane.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"_fastmcp":{"tags":["readonly"]}}}]}}` + "\n"
	textBefore = `"result":{"content":[{"type":"text","text":"`
	textAfter  = `"}],"isError":false}}` + "\n"
	shortText  = "Keys sent to pane %3"
)

// textLine is a line of a terminal as JSON carries it; text is made of whole ones.
const textLine = `-rw-r--r-- 1 ann ann  18263 Nov 21 14:02 collected-notes-2026.md` + `   [ok] building target 7 of 40: /usr/src/linux/kernel/sched.c\n`

// textBlock is the unit in which text is written.
var textBlock = bytes.Repeat([]byte(textLine), 64<<10/len(textLine))

// serve is an MCP server that costs next to nothing: it reads only the start of
// each line, where this program's client puts the id and the length of the text
// it wants back ("bytes"). It returns the exit code.
func serve(stdin io.Reader, stdout io.Writer) int {
	s := server{w: stdout}
	if err := s.run(stdin); err != nil {
		fmt.Fprintf(os.Stderr, "serve: %v\n", err)
		return 1
	}
	return 0
}

type server struct {
	w    io.Writer
	head []byte // the start of the line that is being read
	out  []byte // answers not written yet
}

func (s *server) run(r io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := r.Read(buf)
		for chunk := buf[:n]; len(chunk) > 0; {
			line, rest, whole := bytes.Cut(chunk, []byte("\n"))
			s.head = append(s.head, line[:min(len(line), headLen-len(s.head))]...)
			if whole {
				if err := s.answer(); err != nil {
					return err
				}
				s.head = s.head[:0]
			}
			chunk = rest
		}
		if err := s.flush(); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answer appends the answer to the line that starts with head.
func (s *server) answer() error {
	id := digitsAfter(s.head, `"id":`)
	if id == nil {
		return nil // a notification
	}
	s.out = append(s.out, `{"jsonrpc":"2.0","id":`...)
	s.out = append(s.out, id...)
	s.out = append(s.out, ',')
	switch {
	case bytes.Contains(s.head, []byte(`"method":"initialize"`)):
		s.out = append(s.out, initializeResult...)
		return nil
	case bytes.Contains(s.head, []byte(`"method":"tools/list"`)):
		s.out = append(s.out, toolsResult...)
		return nil
	}
	s.out = append(s.out, textBefore...)
	if n := digitsAfter(s.head, `"bytes":`); n == nil {
		s.out = append(s.out, shortText...)
	} else if err := s.text(n); err != nil {
		return err
	}
	s.out = append(s.out, textAfter...)
	return nil
}

// text writes text of a length in digits.
func (s *server) text(digits []byte) error {
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return err
	}
	for n > 0 {
		part := textBlock[:min(n, int64(len(textBlock)))]
		s.out = append(s.out, part...)
		n -= int64(len(part))
		if len(s.out) >= len(textBlock) {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := s.w.Write(s.out)
	s.out = s.out[:0]
	return err
}

// digitsAfter returns the digits that follow name in b, nil without name.
func digitsAfter(b []byte, name string) []byte {
	_, rest, ok := bytes.Cut(b, []byte(name))
	if !ok {
		return nil
	}
	n := 0
	for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
		n++
	}
	return rest[:n]
}
