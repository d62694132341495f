package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/redact"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/disk"

	"github.com/spf13/pflag"
)

// streams are the process's own, through which the client talks to a wrapped
// server.
type streams struct{ in, out, err *os.File }

func newApp(std streams, env []string) *app {
	return &app{std: std, stdin: std.in, stdout: std.out, stderr: std.err, env: env}
}

// An app holds what the program uses of its surroundings.
type app struct {
	std            streams   // of the client and the server; only to wrap a server
	stdin          io.Reader // of the other commands, as the next two
	stdout, stderr io.Writer
	env            []string // as os.Environ
	systemConfig   string   // the administrator's file
	systemUID      int      // another owner allowed besides root; not 0 only in tests
	spoolFS        disk.FS  // of the written session; nil: the real one

	// Owned by run, which fills them in before any command runs.
	keys  []cli.Key
	flags *pflag.FlagSet // those of the configuration

	redactor     *redact.Redactor // made by redactorOnce, see messages
	redactorOnce sync.Once
}

// say writes a message of this program to standard error.
func (a *app) say(message error) {
	fmt.Fprintln(a.stderr, terminal.EscapeMessage(a.clean("auditproxy: "+message.Error())))
}

func (a *app) getenv(name string) string { return cli.Getenv(a.env, name) }

func (a *app) colours(w io.Writer) bool { return terminal.Colours(w, a.getenv) }

// messages returns the redactor for texts that this program prints: its
// arguments and environment may hold credentials, and its output is often kept.
// These digests are never looked up, so the key is made and forgotten. It may
// be called concurrently.
func (a *app) messages() *redact.Redactor {
	a.redactorOnce.Do(func() {
		key := make([]byte, spool.KeySize)
		rand.Read(key)                                      // never fails, see crypto/rand
		a.redactor, _ = redact.New(redact.Config{Key: key}) // which only needs the key
	})
	return a.redactor
}

func (a *app) clean(text string) string {
	return string(a.messages().AppendMessage(nil, []byte(text)))
}

// cleanText is clean for a text that is not this program's own, such as a policy's.
func (a *app) cleanText(text string) string {
	return string(a.messages().AppendWhole(nil, []byte(text)))
}

// A cleanWriter is standard error without credentials.
type cleanWriter struct{ a *app }

// Write writes one message, all of it.
func (w cleanWriter) Write(message []byte) (int, error) {
	if _, err := io.WriteString(w.a.stderr, w.a.clean(string(message))); err != nil {
		return 0, err
	}
	return len(message), nil
}

// location is the time zone of a's environment. The program's own TZ is the
// same one, except in tests.
func (a *app) location() *time.Location {
	if name := a.getenv("TZ"); name != "" {
		if loc, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return loc
		}
	}
	return time.Local
}

// now is the present in that zone.
func (a *app) now() time.Time { return time.Now().In(a.location()) }
