package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
)

// TestBash compares the detector with a shell: bash runs generated commands with
// an rm and a git that only record how they are called. Every text whose calls
// would have destroyed something must be found. Nothing is found in texts that
// only quote one.
func TestBash(t *testing.T) {
	bash := dev.Command(t, "bash")
	count := 1000
	switch {
	case os.Getenv("SOAK") != "":
		count = 10000
	case testing.Short():
		count = 500
	}
	t.Parallel()
	const batch = 250
	shims := makeShims(t)
	r := rand.New(rand.NewPCG(11, 358))
	c := New(nil)
	calls, missed, quoted := 0, 0, 0
	for done := 0; done < count; done += batch {
		dir := t.TempDir()
		texts := make([]string, batch)
		var script strings.Builder
		for i := range texts {
			texts[i] = generate(r)
			work := filepath.Join(dir, fmt.Sprint(i))
			if err := os.MkdirAll(filepath.Join(work, "build"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, ".text"), []byte(texts[i]), 0o600); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&script, "( cd %d && export LOG=$PWD/.log && . ./.text; wait ) </dev/null >/dev/null 2>&1\n", i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", script.String())
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + shims, "HOME=" + dir}
		cmd.Run() // the last text decides the exit status
		if ctx.Err() != nil {
			t.Fatal("a generated command does not end")
		}
		cancel()
		for i, text := range texts {
			log, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i), ".log"))
			found := does(c, text)
			harm := false
			for call := range bytes.SplitSeq(bytes.TrimSuffix(log, []byte("\x01")), []byte("\x01")) {
				argv := strings.Split(strings.TrimSuffix(string(call), "\x00"), "\x00")
				harm = harm || harmful(argv)
			}
			if harm {
				if calls++; found == 0 {
					missed++
					t.Errorf("bash destroys, but nothing is found in %q (calls %q)", text, log)
				}
			}
		}
	}
	for range count / 10 {
		w := spell(r, pick(r, harmfulCommands))
		text := strings.ReplaceAll(pick(r, []string{"echo Q", ": Q", "x=Q", "true # T", "grep Q f", "printf '%s\\n' Q", "cat <<'EOF'\nT\nEOF", "git commit -m Q", "echo Q > notes", "[ Q = x ]"}), "Q", quoteWord(r, w, true))
		text = strings.ReplaceAll(text, "T", strings.ReplaceAll(w, "\n", " "))
		if found := does(c, text); found != 0 {
			quoted++
			t.Logf("%v in quoted text %q", found.Words(), text)
		}
	}
	t.Logf("%d of %d texts destroy, %d missed; %d of %d quoted ones flagged", calls, count, missed, quoted, count/10)
	if calls < count/4 {
		t.Errorf("only %d of %d texts destroy: the shims or the generator are wrong", calls, count)
	}
	if quoted*20 > count/10 {
		t.Errorf("%d of %d quoted texts are flagged", quoted, count/10)
	}
}

// makeShims returns a directory that is fit to be the only one of PATH.
func makeShims(t *testing.T) string {
	dir := t.TempDir()
	record := "#!/bin/sh\nprintf '%s\\000' NAME \"$@\" >>\"$LOG\"\nprintf '\\001' >>\"$LOG\"\n"
	for name, body := range map[string]string{
		"rm":   strings.Replace(record, "NAME", "rm", 1),
		"git":  strings.Replace(record, "NAME", "git", 1),
		"sudo": "#!/bin/sh\nexec \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "sh", "env", "nohup", "nice", "timeout", "stdbuf", "setsid", "xargs", "find", "cat", "base64", "tr", "rev", "head", "tee", "xxd", "printf", "sed", "awk", "perl"} {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// harmful says, without the detector's code, whether a call destroys something.
func harmful(argv []string) bool {
	has := func(args []string, words ...string) bool {
		for _, a := range args {
			for _, w := range words {
				if a == w {
					return true
				}
			}
		}
		return false
	}
	switch argv[0] {
	case "rm":
		for i, a := range argv[1:] {
			if a == "--" {
				return len(argv) > i+2
			}
			if a == "--help" {
				return false
			}
			if !strings.HasPrefix(a, "-") {
				return true
			}
		}
	case "git":
		args := argv[1:]
		for len(args) > 1 && strings.HasPrefix(args[0], "-") {
			if args[0] == "-C" || args[0] == "-c" {
				args = args[1:]
			}
			args = args[1:]
		}
		if len(args) == 0 || has(args, "-n", "--dry-run") {
			return false
		}
		verb := args[0]
		args = args[1:]
		switch verb {
		case "push":
			return has(args, "-f", "--force", "--mirror", "--delete", "+main", ":feature")
		case "reset":
			return has(args, "--hard")
		case "clean":
			return has(args, "-f", "-fd", "-xdf")
		case "checkout":
			return has(args, ".", "--", "-f")
		case "restore":
			return len(args) > 0 && !has(args, "--staged")
		case "stash":
			return has(args, "drop", "clear")
		case "branch":
			return has(args, "-D") && len(args) > 1
		}
	}
	return false
}

var harmfulCommands = [][]string{
	{"rm", "-rf", "build"}, {"rm", "build"}, {"rm", "-r", "--force", "build"}, {"rm", "build", "-rf"}, {"rm", "-f", "--", "-x"},
	{"git", "push", "--force"}, {"git", "push", "origin", "main", "-f"}, {"git", "push", "origin", "+main"}, {"git", "push", "origin", ":feature"},
	{"git", "-C", "build", "reset", "--hard"}, {"git", "reset", "HEAD", "--hard"}, {"git", "clean", "-fd"}, {"git", "-c", "a.b=c", "clean", "-xdf"},
	{"git", "checkout", "."}, {"git", "checkout", "--", "build"}, {"git", "restore", "build"}, {"git", "stash", "drop"}, {"git", "branch", "-D", "x"},
}

var harmlessCommands = [][]string{
	{"rm", "--help"}, {"git", "status"}, {"git", "push", "--dry-run", "--force"}, {"git", "clean", "-n"}, {"git", "checkout", "main"}, {"echo", "rm", "-rf", "build"}, {"ls"},
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func generate(r *rand.Rand) string {
	argv := pick(r, harmfulCommands)
	if r.IntN(8) == 0 {
		argv = pick(r, harmlessCommands)
	}
	text := spell(r, argv)
	if r.IntN(3) == 0 {
		text = strings.ReplaceAll(pick(r, []string{
			"sudo T", "env T", "env A=1 T", "nohup T", "nice T", "nice -n 5 T", "timeout 5 T", "timeout -s KILL 5 T", "stdbuf -oL T", "setsid -w T", "command T", "command -p -- T",
			"builtin command T", "exec T", "A=1 B=2 T", "echo x | xargs T", "echo x | xargs -n 1 T", "xargs T </dev/null", "echo x | xargs -I{} T", "find . -maxdepth 0 -exec T \\;",
			"find . -maxdepth 0 -exec env T {} +", "sudo env A=b nice T", "time T", "! T", "exec -a zzz T", "2>/dev/null T", ">/dev/null T", "T 2>&1 | cat",
		}), "T", text)
	}
	for range r.IntN(4) {
		text = nest(r, text)
	}
	return text
}

// spell returns a command whose words are written in one of many ways.
func spell(r *rand.Rand, argv []string) string {
	if r.IntN(25) == 0 && len(argv) > 1 {
		return "{" + strings.Join(argv, ",") + "}"
	}
	if r.IntN(25) == 0 {
		return "set -- " + strings.Join(argv, " ") + "; \"$@\""
	}
	if r.IntN(25) == 0 {
		return "c=(" + strings.Join(argv, " ") + "); \"${c[@]}\""
	}
	prefix := ""
	var b strings.Builder
	for i, w := range argv {
		if i > 0 {
			b.WriteString(pick(r, []string{" ", " ", " ", " ", "\t", "  ", " \\\n", "${IFS}"}))
		}
		switch r.IntN(14) {
		case 0:
			name := fmt.Sprintf("v%d", r.IntN(1000))
			prefix += strings.NewReplacer("N", name, "M", name+"m", "W", quoteWord(r, w, false)).Replace(pick(r, []string{
				"N=W; ", "N=W; ", "N=W\n", "N=W && ", "true && N=W; ", "false || N=W; ", "N=x; true && N=W; ", "N=W; false && N=x; ", "N=W; (N=x); ",
				"if true; then N=W; else N=x; fi; ", "if false; then N=x; else N=W; fi; ", "N=x; if true; then N=W; fi; ", "case x in x) N=W;; *) N=y;; esac; ",
				"false && N=x || N=W; ", "N=x; for i in 1; do N=W; done; ", "while true; do N=W; break; done; ", "N=W; h() { local N=x; }; h; ", "M=W; N=$M; ",
				"M=x; true && M=W; N=$M; ",
			}))
			b.WriteString(pick(r, []string{"$" + name, "${" + name + "}", "\"$" + name + "\"", "${" + name + ":-x}"}))
		case 1:
			cut := r.IntN(len(w))
			name := fmt.Sprintf("v%d", r.IntN(1000))
			prefix += name + "=" + quoteWord(r, w[cut:], false) + "; "
			b.WriteString(quoteWord(r, w[:cut], false) + "${" + name + "}")
		case 2:
			b.WriteString(pick(r, []string{"$(echo W)", "$(printf %s W)", "\"$(echo W)\"", "`echo W`", "$(cat <<< W)", "${unset_:-W}", "$(printf '%b' 'W')"}))
			s := strings.ReplaceAll(b.String(), "W", w)
			b.Reset()
			b.WriteString(s)
		default:
			b.WriteString(quoteWord(r, w, false))
		}
	}
	return prefix + b.String()
}

// quoteWord returns text that a shell reads as the word.
func quoteWord(r *rand.Rand, w string, always bool) string {
	kind := r.IntN(9)
	if always || strings.ContainsAny(w, " \t\n$`\"'\\;&|(){}<>*?!#~") {
		kind = r.IntN(3)
	} else if w == "" {
		return "''"
	}
	switch kind {
	case 0:
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	case 1:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(w) + `"`
	case 2:
		var b strings.Builder
		b.WriteString("$'")
		for i := range len(w) {
			switch c := w[i]; {
			case r.IntN(4) == 0 && !always:
				fmt.Fprintf(&b, `\%03o`, c)
			case r.IntN(4) == 0 && !always:
				fmt.Fprintf(&b, `\x%02x`, c)
			case c == '\'' || c == '\\':
				b.WriteString(`\` + string(c))
			default:
				b.WriteByte(c)
			}
		}
		return b.String() + "'"
	case 3: // escapes
		var b strings.Builder
		for i := range len(w) {
			if r.IntN(2) == 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(w[i])
		}
		return b.String()
	case 4: // empty quotes inside
		cut := r.IntN(len(w) + 1)
		if w[0] == ':' {
			cut = len(w) // an unset variable in front of ":ref" could be set as well
		}
		return w[:cut] + pick(r, []string{"''", `""`, "$''", "\\\n", "${u_}", "$(:)"}) + w[cut:]
	case 5: // quoted in part
		cut := r.IntN(len(w) + 1)
		return w[:cut] + pick(r, []string{"'" + w[cut:] + "'", `"` + w[cut:] + `"`})
	}
	return w
}

// nest returns a text that runs the text.
func nest(r *rand.Rand, text string) string {
	form := pick(r, []string{
		"T; true", "true; T", "true && T", "false || T", "{ T\n}", "( T\n)", "if true; then T\nfi", "if false; then :; else T\nfi", "for i in 1; do T\ndone", "while true; do T\nbreak; done",
		"f() { T\n}; f", "function g { T\n}\ng", "case x in x) T\n;; esac", "T &\nwait", "T | cat", "echo x | { T\n}", "x=$(T\n)", "echo \"$(T\n)\"", "cat <(T\n)", "echo $(T\n) >/dev/null",
		"[[ -n $(T\n) ]]", "ls # comment\nT", "T # comment", "bash <<'EOF'\nT\nEOF", "cat <<'EOF' | bash\nT\nEOF", "until false; do T\nbreak; done", "set -- a b\nT", "true; (T\n) &\nwait", "a=1\nT", "cat <<EOF\n$(T\n)\nEOF",
		"eval Q", "bash -c Q", "sh -c Q", "bash -ec Q", "echo Q | bash", "printf '%s\\n' Q | bash", "bash <<< Q", "x=Q; eval \"$x\"", "x=Q; bash -c \"$x\"", "bash -s <<< Q", ". <(printf %s Q)",
		"printf %s Q > s.sh; bash s.sh", "printf %s Q > s.sh; . ./s.sh", "echo Q | tee s.sh | bash", "trap Q EXIT", "echo x | xargs bash -c Q", "find . -maxdepth 0 -exec bash -c Q \\;", "env bash -c Q", "timeout 5 bash -c Q", "sudo bash -c Q",
		"exec bash -c Q", "bash -c 'eval \"$1\"' _ Q", "bash -c '$0 -c \"$1\"' bash Q", "read -r -d '' x <<< Q; eval \"$x\"", "perl -e 'exec \"bash\", \"-c\", $ARGV[0]' Q", "eval \"$(printf %s Q)\"", "bash -c \"$(printf %s Q)\"",
		"echo B | base64 -d | bash", "bash <(echo B | base64 -d)", "eval \"$(echo B | base64 -d)\"", "echo R | rev | bash",
	})
	if strings.Contains(form, "EOF") && strings.Contains(text, "EOF") {
		form = "T; true"
	}
	reversed := []byte(strings.ReplaceAll(text, "\n", " ; "))
	if strings.Contains(form, "R") && (strings.Contains(text, "\n") || strings.Contains(text, "'")) {
		form = "true; T"
	}
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	switch {
	case strings.Contains(form, "Q"):
		return strings.Replace(form, "Q", quoteWord(r, text, true), 1)
	case strings.Contains(form, "B |"):
		return strings.Replace(form, "B", base64.StdEncoding.EncodeToString([]byte(text)), 1)
	case strings.Contains(form, "R |"):
		return strings.Replace(form, "R", "'"+string(reversed)+"'", 1)
	}
	return strings.Replace(form, "T", text, 1)
}
