// Command witness is transparency-dev's witness of one log, for tests: its library
// without the SQLite of its own command, which takes most of that command's build.
//
// Its arguments are the log's origin, its verifier key, the path of the witness's
// key and, optionally, of a file in which it keeps what it has signed. It prints the
// address on which it listens.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"sync"

	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 || len(args) > 4 {
		return errors.New("give the log's origin, its key, the path of the witness's key and, optionally, of its memory")
	}
	log, err := note.NewVerifier(args[1])
	if err != nil {
		return err
	}
	key, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	signer, err := f_note.NewSignerForCosignatureV1(string(key))
	if err != nil {
		return err
	}
	m := &memory{}
	if len(args) == 4 {
		m.path = args[3]
	}
	w, err := witness.New(context.Background(), witness.Opts{
		Persistence: m,
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			return log, origin == args[0], nil
		},
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	http.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(w).AddCheckpoint)
	fmt.Println(l.Addr())
	return http.Serve(l, nil)
}

// A memory keeps the log's last checkpoint that the witness has signed, also in the
// file at path if it is set.
type memory struct {
	path string
	mu   sync.Mutex // guards last
	last []byte
}

func (m *memory) Init(context.Context) error {
	if m.path == "" {
		return nil
	}
	last, err := os.ReadFile(m.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.last = last
	return nil
}

func (m *memory) Latest(context.Context, string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

func (m *memory) Update(_ context.Context, _ string, change func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := change(m.last)
	if err != nil {
		return err
	}
	if m.path != "" {
		if err := os.WriteFile(m.path, next, 0o600); err != nil {
			return err
		}
	}
	m.last = next
	return nil
}
