package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstID is the first id of a call. Ids have one length, and so have the
// answers: a refusal or a lost byte shows by the length alone.
const firstID = 10_000_000

// A session is a client with the processes it started: a relay or a proxy, and
// behind it the server. It reads and writes with blocking system calls, to keep
// its share of the measurement small.
type session struct {
	cmd     *exec.Cmd
	in, out int // descriptors: the far side's input and output
	buf     []byte
	line    []byte // the call being made up
	id      int
}

// start starts argv and opens a session as a client does. It returns when
// initialize is answered.
func start(ctx context.Context, argv, env []string) (*session, error) {
	stdin, err := pipe()
	if err != nil {
		return nil, err
	}
	stdout, err := pipe()
	if err != nil {
		return nil, errors.Join(err, unix.Close(stdin[0]), unix.Close(stdin[1]))
	}
	theirIn, theirOut := os.NewFile(uintptr(stdin[0]), "stdin"), os.NewFile(uintptr(stdout[1]), "stdout")
	defer theirIn.Close()
	defer theirOut.Close()
	s := &session{
		cmd: exec.CommandContext(ctx, argv[0], argv[1:]...),
		in:  stdin[1],
		out: stdout[0],
		buf: make([]byte, 1<<20),
		id:  firstID,
	}
	s.cmd.Env = env
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %q: %w", argv[0], err), unix.Close(s.in), unix.Close(s.out))
	}
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"
	if err := s.exchange(initialize, len(`{"jsonrpc":"2.0","id":1,`)+len(initializeResult)); err != nil {
		return nil, errors.Join(fmt.Errorf("initializing: %w", err), s.close())
	}
	return s, nil
}

// pipe returns the read and the write end of a pipe.
func pipe() (p [2]int, err error) {
	if err := unix.Pipe(p[:]); err != nil {
		return p, fmt.Errorf("making a pipe: %w", err)
	}
	for _, fd := range p {
		unix.CloseOnExec(fd)
	}
	return p, nil
}

// ready sends that the client is ready and lists the tools.
func (s *session) ready() error {
	if err := s.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		return err
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	return s.exchange(list, len(`{"jsonrpc":"2.0","id":2,`)+len(toolsResult))
}

// close ends the session as a client does: it closes the input and waits.
func (s *session) close() error {
	err := unix.Close(s.in)
	for err == nil {
		var n int
		if n, err = s.read(); n == 0 {
			break
		}
	}
	return errors.Join(err, unix.Close(s.out), s.cmd.Wait())
}

func (s *session) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(s.in, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// read reads the available bytes into buf; 0 bytes are the end.
func (s *session) read() (int, error) {
	for {
		n, err := unix.Read(s.out, s.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading: %w", err)
		}
		return n, nil
	}
}

// exchange writes a line and waits for an answer of a length.
func (s *session) exchange(line string, want int) error {
	if err := s.write([]byte(line)); err != nil {
		return err
	}
	return s.await(want)
}

// await reads one line and checks its length.
func (s *session) await(want int) error {
	for got := 0; ; {
		n, err := s.read()
		if err != nil {
			return err
		}
		if got += n; n == 0 || s.buf[n-1] == '\n' {
			return check(got, want, s.buf[:n])
		}
	}
}

func check(got, want int, last []byte) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("the answers have %d bytes, want %d; they end %q", got, want, last[max(0, len(last)-200):])
}

// A call is a tools/call of one shape.
type call struct {
	tool   string
	args   string // its arguments, as JSON
	answer int    // length of the text asked for; 0: the server's own short text
	block  int64  // length of the text that replaces the "@" in args; 0: none
}

// sendKeys is the common call.
var sendKeys = call{tool: "send_keys", args: `{"keys":"make -C ~/src/project test 2>&1 | tail -40","pane_id":"%3","enter":true}`}

// capture is a call that is answered with n bytes of text.
func capture(n int) call { return call{tool: "capture_pane", args: `{"pane_id":"%3"}`, answer: n} }

// under is a call with n bytes of text under a name.
func under(name string, n int64) call {
	return call{tool: "send_keys", args: `{"pane_id":"%3","` + name + `":"@"}`, block: n}
}

// append appends the line of c, or the part before the block.
func (c call) append(dst []byte, id int) (line []byte, after string) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, int64(id), 10)
	dst = append(dst, `,"method":"tools/call","params":{"name":"`...)
	dst = append(dst, c.tool...)
	dst = append(dst, `",`...)
	if c.answer > 0 {
		dst = append(dst, `"_meta":{"bytes":`...)
		dst = strconv.AppendInt(dst, int64(c.answer), 10)
		dst = append(dst, `},`...)
	}
	dst = append(dst, `"arguments":`...)
	before, after, _ := strings.Cut(c.args, "@")
	return append(dst, before...), after + "}}\n"
}

// answerLen is the length of the answer's line.
func (c call) answerLen() int {
	n := c.answer
	if n == 0 {
		n = len(shortText)
	}
	return len(`{"jsonrpc":"2.0","id":10000000,`) + len(textBefore) + n + len(textAfter)
}

// roundTrip makes one call and waits for its answer.
func (s *session) roundTrip(c call) error {
	var after string
	s.line, after = c.append(s.line[:0], s.id)
	s.id++
	if c.block == 0 {
		s.line = append(s.line, after...)
		if err := s.write(s.line); err != nil {
			return err
		}
		return s.await(c.answerLen())
	}
	if err := s.write(s.line); err != nil {
		return err
	}
	for left := c.block; left > 0; {
		part := textBlock[:min(left, int64(len(textBlock)))]
		if err := s.write(part); err != nil {
			return err
		}
		left -= int64(len(part))
	}
	if err := s.write([]byte(after)); err != nil {
		return err
	}
	return s.await(c.answerLen())
}

// pipeline makes n calls and has inFlight of them open at a time.
func (s *session) pipeline(c call, n, inFlight int) error {
	want := n * c.answerLen()
	got, sent, answered := 0, 0, 0
	var last []byte
	for answered < n {
		s.line = s.line[:0]
		for ; sent < n && sent-answered < inFlight; sent++ {
			var after string
			s.line, after = c.append(s.line, s.id)
			s.line = append(s.line, after...)
			s.id++
		}
		if err := s.write(s.line); err != nil {
			return err
		}
		r, err := s.read()
		if err != nil {
			return err
		}
		if r == 0 {
			break
		}
		last = s.buf[:r]
		got += r
		answered += bytes.Count(last, []byte("\n"))
	}
	return check(got, want, last)
}
