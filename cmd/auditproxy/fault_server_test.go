package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// journalingServer is a server that writes the id of each call it executes to a
// file, one line each, before it answers: even if it or the proxy dies, the
// file holds what was executed. The first line is its process id. It reads as a
// server without a parser of its own would: ids come first.
func journalingServer(args []string) int {
	flags := flag.NewFlagSet("journaling-server", flag.ContinueOnError)
	journal := flags.String("journal", "", "the `file`")
	hold := flags.Int("hold", 0, "answer the first calls, so many, only after the first ping")
	calls := flags.Int("calls", 0, "end after so many calls; 0: at the end of the input")
	end := flags.String("end", "exit 0", "how to end: exit N or kill N")
	child := flags.Bool("child", false, "leave a child behind in the process group")
	id := flags.String("id", `"id":`, "the `name` of the ids that are answered")
	ignore := flags.Bool("ignore", false, "ignore the end of the input and what signals can be ignored")
	if flags.Parse(args) != nil {
		return 2
	}
	s := &journaling{out: bufio.NewWriter(os.Stdout), left: *calls, hold: *hold, id: *id, deaf: *ignore}
	var err error
	// No bytes are held back: the journal must not end with the server.
	if s.journal, err = os.OpenFile(*journal, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Fprintln(s.journal, os.Getpid())
	if *child {
		syscall.ForkExec("/bin/sleep", []string{"sleep", "100"}, &syscall.ProcAttr{})
	}
	if *ignore {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		s.out.WriteString(`{"jsonrpc":"2.0","method":"notifications/ready"}` + "\n")
		s.out.Flush()
	}
	s.serve()
	s.out.Flush()
	how, n, _ := strings.Cut(*end, " ")
	if how == "kill" {
		// A shell does not handle signals as the Go runtime does.
		fmt.Fprintln(os.Stderr, syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + n + " $$"}, nil))
	}
	code, _ := strconv.Atoi(n)
	return code
}

type journaling struct {
	journal *os.File
	out     *bufio.Writer
	left    int // calls before the end
	hold    int // calls not to answer yet
	held    []string
	id      string
	deaf    bool
}

func (s *journaling) serve() {
	in := bufio.NewReaderSize(os.Stdin, 256<<10)
	for {
		line, err := in.ReadBytes('\n')
		// A line without an end is executed if nothing is missing but that.
		if err == nil || bytes.HasSuffix(line, []byte("}}}")) {
			s.message(line)
			if s.left--; s.left == 0 {
				return
			}
		}
		if errors.Is(err, io.EOF) && s.deaf {
			<-time.After(time.Hour) // without a timer, Go would end it as a deadlock
		}
		if err != nil {
			return
		}
		if in.Buffered() == 0 {
			s.out.Flush()
		}
	}
}

func (s *journaling) message(line []byte) {
	_, rest, _ := bytes.Cut(line, []byte(s.id))
	id, rest, _ := bytes.Cut(rest, []byte(`,`))
	if !bytes.Contains(rest[:min(len(rest), 64)], []byte(`"tools/call"`)) {
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
		for _, id := range s.held {
			s.answer(id, 0)
		}
		s.hold, s.held = 0, nil
		return
	}
	if _, err := s.journal.Write(append(bytes.Clone(id), '\n')); err != nil {
		os.Exit(2)
	}
	if s.hold > len(s.held) {
		s.held = append(s.held, string(id))
		return
	}
	// Every third answer is as long as its request.
	size := 0
	if n, _ := strconv.Atoi(string(id)); n%3 == 0 {
		size = len(line)
	}
	s.answer(string(id), size)
}

func (s *journaling) answer(id string, size int) {
	fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", id, bytes.Repeat([]byte("r"), size))
}
