package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli"
)

// TestPasswordIsReadAgain replaces a file with a password in the ways that
// administrators and programs do.
func TestPasswordIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	password := loadPassword(t, file, "one\n")
	for _, step := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"unchanged", func() error { return nil }, "one"},
		{"written", func() error { return os.WriteFile(file, []byte("two\n"), 0o600) }, "two"},
		{"emptied, to be written", func() error { return os.Truncate(file, 0) }, "two"},
		{"removed", func() error { return os.Remove(file) }, "two"},
		{"there again", func() error { return os.WriteFile(file, []byte("three"), 0o600) }, "three"},
		{"with CR LF", func() error { return os.WriteFile(file, []byte("four\r\n"), 0o600) }, "four"},
		{"with the mark of an editor of Windows", func() error { return os.WriteFile(file, []byte("\ufefffive\r\n"), 0o600) }, "five"},
		{"the mark alone", func() error { return os.WriteFile(file, []byte("\ufeff"), 0o600) }, "five"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := password(); got != step.want {
			t.Errorf("%s: the password is %q, want %q", step.name, got, step.want)
		}
	}
}

// A pipe has its content once: a second read waits for ever, or reads nothing.
func TestPasswordOfAPipe(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) string{
		"unnamed": func(t *testing.T) string {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			if _, err := w.WriteString("one\n"); err != nil {
				t.Fatal(err)
			}
			w.Close()
			return fmt.Sprintf("/dev/fd/%d", r.Fd())
		},
		"named": func(t *testing.T) string {
			name := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
			written := make(chan error, 1)
			go func() { written <- os.WriteFile(name, []byte("one\n"), 0) }()
			t.Cleanup(func() {
				if err := <-written; err != nil {
					t.Error(err)
				}
			})
			return name
		},
	} {
		t.Run(name, func(t *testing.T) {
			password := loadPassword(t, open(t), "")
			for range 3 {
				if got := password(); got != "one" {
					t.Fatalf("the password is %q, want that of the pipe", got)
				}
			}
		})
	}
}

// loadPassword writes a file, unless it exists, and returns what a program takes for
// its password at the time.
func loadPassword(t *testing.T, file, text string) func() string {
	t.Helper()
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	get, err := cli.RenewPassword(tlsValues(t, "P_K_PASSWORD_FILE="+file), "k.password", nil)
	if err != nil {
		t.Fatal(err)
	}
	return get
}
