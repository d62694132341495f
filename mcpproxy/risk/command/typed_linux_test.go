package command

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/risk/command/lineedit"

	"golang.org/x/sys/unix"
)

// TestTyped types random texts and keys into bash, whose rm only records how it is called. What
// deletes must be found, and nearly all lines must be those that Edit returns: versions of bash
// differ.
func TestTyped(t *testing.T) {
	bash := dev.Command(t, "bash")
	count := 60
	switch {
	case os.Getenv("SOAK") != "":
		count = 5000
	case testing.Short():
		count = 20
	}
	t.Parallel()
	shims := makeShims(t)
	r := rand.New(rand.NewPCG(5, 2))
	c := New(nil)
	other, harm := 0, 0
	for range count {
		lines := make([]string, 1+r.IntN(3))
		for i := range lines {
			lines[i] = keys(r) + pick(r, []string{"", "b", " b"})
		}
		dir := t.TempDir()
		ran := typeInto(t, bash, shims, dir, lines)
		text := strings.Join(lines, "\r") + "\r"
		edited, _, _ := lineedit.Edit(text, 1<<20)
		want := slices.DeleteFunc(strings.Split(edited, "\n"), func(line string) bool { return line == "" || line[0] == ':' }) // of vi
		if !slices.Equal(ran, want) {
			other++
			t.Logf("%q: bash has %q, Edit %q", text, ran, want)
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		if !slices.ContainsFunc(strings.Split(string(log), "\x01"), func(call string) bool {
			return harmful(strings.Split(strings.TrimSuffix(call, "\x00"), "\x00"))
		}) {
			continue
		}
		if harm++; does(c, text) == 0 {
			t.Errorf("bash deletes, but nothing is found in %q (lines %q)", text, ran)
		}
	}
	t.Logf("%d of %d texts end as other lines, %d delete", other, count, harm)
	if other*20 > count {
		t.Errorf("%d of %d texts end as other lines than in bash", other, count)
	}
	if harm*20 < count {
		t.Errorf("only %d of %d texts delete: the shims or the generator are wrong", harm, count)
	}
}

// keys returns what is typed into a line: parts of a command that deletes, and keys that edit.
// Those that complete and search are not among them, nor ^L, which shows the prompt again, and
// none that waits for another key is last.
func keys(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(8) {
		if r.IntN(5) < 2 {
			b.WriteString(pick(r, []string{"rm", "r", "m", " -rf b", "rm -rf b", "rm b", " ", "x", "#", "é", "a b"}))
			continue
		}
		b.WriteString(pick(r, []string{
			"\x01", "\x02", "\x05", "\x06", "\x08", "\x7f", "\x0b", "\x14", "\x15", "\x17", "\x19", "\x10", "\x0e", "\x1e", "\x07", "\x16x",
			"\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1bOD", "\x1b[3~", "\x1b[1~", "\x1b[4~", "\x1b[2~\x15", "\x1b[5C", "\x1b[1;5D",
			"\x1b[3;5~", "\x1b[30m", "\x1b[1;31m", "\x1b[Z", "\x1bOP", "\x1b[15~", "\x1b ", "\x1bb", "\x1bf", "\x1bd", "\x1b\x7f", "\x1b\\", "\x1b[1;2D",
			"\x1b[200~rm b\x15\x1b[201~", "\x1b:",
		}))
	}
	return b.String()
}

// inputrc is what Debian binds for all of a host.
const inputrc = `set input-meta on
set output-meta on
"\e[1~": beginning-of-line
"\e[4~": end-of-line
"\e[3~": delete-char
"\e[2~": quoted-insert
"\e[1;5C": forward-word
"\e[1;5D": backward-word
"\e[5C": forward-word
"\e[5D": backward-word
"\e\e[C": forward-word
"\e\e[D": backward-word
`

// typeInto types lines into an interactive bash at a terminal of its own, each when bash asks for
// it, and returns the lines of its history.
func typeInto(t *testing.T, bash, shims, dir string, lines []string) []string {
	t.Helper()
	const prompt = "@@>"
	history := filepath.Join(dir, "history")
	rc := fmt.Sprintf("PS1='%s'\nHISTFILE='%s'\nHISTCONTROL=\nIGNOREEOF=99\nset +H\nPROMPT_COMMAND='history -a'\ncommand_not_found_handle() { :; }\n", prompt, history)
	for name, text := range map[string]string{"rc": rc, "inputrc": inputrc} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	raw, err := terminal.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--rcfile", filepath.Join(dir, "rc"), "-i")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, side, side, side
	cmd.Env = []string{"PATH=" + shims, "HOME=" + dir, "LOG=" + filepath.Join(dir, "log"), "TERM=xterm", "LC_ALL=C.UTF-8", "INPUTRC=" + filepath.Join(dir, "inputrc")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	side.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); cmd.Wait() }()
	deadline, _ := ctx.Deadline()
	terminal.SetDeadline(deadline)
	var shown []byte
	asked := func() {
		t.Helper()
		buf := make([]byte, 4096)
		for !bytes.Contains(shown, []byte(prompt)) {
			n, err := terminal.Read(buf)
			if shown = append(shown, buf[:n]...); err != nil {
				t.Fatalf("reading what bash shows for %q: %v; it showed %q", lines, err, shown)
			}
		}
		shown = nil
	}
	for _, line := range lines {
		asked()
		if _, err := terminal.WriteString(line + "\r"); err != nil {
			t.Fatal(err)
		}
	}
	asked()
	kept, err := os.ReadFile(history)
	if err != nil {
		return nil // nothing was typed
	}
	return strings.Split(strings.TrimSuffix(string(kept), "\n"), "\n")
}
