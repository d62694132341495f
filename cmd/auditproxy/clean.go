package main

import (
	"crypto/rand"
	"io"
	"strings"

	"auditproxy/redact"
	"auditproxy/sink/spool"
)

// messages returns what takes the credentials out of a text that this program
// prints: what it was started with may hold some, and what it prints is often
// kept. Nobody looks their digests up, so the key is made and forgotten. It may
// be called concurrently.
func (a *app) messages() *redact.Redactor {
	a.redactorOnce.Do(func() {
		key := make([]byte, spool.KeySize)
		rand.Read(key)                                      // never fails, see crypto/rand
		a.redactor, _ = redact.New(redact.Config{Key: key}) // whose only need is the key
	})
	return a.redactor
}

func (a *app) clean(text string) string {
	return string(a.messages().AppendMessage(nil, []byte(text)))
}

// A cleanWriter is standard error without credentials.
type cleanWriter struct{ a *app }

// Write takes one message, all of it.
func (w cleanWriter) Write(message []byte) (int, error) {
	if _, err := io.WriteString(w.a.stderr, w.a.clean(string(message))); err != nil {
		return 0, err
	}
	return len(message), nil
}

// cleanLabel is l without credentials, which may reach from its name into its
// value.
func cleanLabel(l label, red *redact.Redactor) label {
	name := string(red.AppendText(nil, []byte(l.name)))
	whole := string(red.AppendText(nil, []byte(l.name+"="+l.value)))
	if !strings.HasPrefix(whole, name+"=") {
		return label{name: whole}
	}
	return label{name, string(red.AppendNamed(nil, []byte(l.name), []byte(l.value)))}
}
