package code

import (
	"math/rand/v2"
	"strings"
	"testing"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// patterns are those that source.has looks for.
var patterns = map[string]pattern{
	"deletes": deletes, "codeEmpty": codeEmpty, "codeKill": codeKill, "codeMode": codeMode, "codeShutdown": codeShutdown, "codeExec": codeExec,
	"codeInput": codeInput, "codeEval": codeEval, "codeRemote": codeRemote, "codeDecode": codeDecode, "codeSecret": codeSecret, "codeSends": codeSends,
	"codeIndirect": codeIndirect, "codeDeleteByName": codeDeleteByName, "mongoDrop": mongoDrop, "powershellDelete": powershellDelete, "codeRoot": codeRoot, "readsOpen": readsOpen, "defines": defines,
	"opensFile": opensFile, "writesFile": writesFile, "writesItself": writesItself, "copiesFile": copiesFile, "readsContent": readsContent, "readsItself": readsItself,
}

// lines are calls that the patterns are about, and ordinary lines.
var lines = []string{
	"import os, sys", "for line in lines:", "    print(line.strip())", "", "x = {'a': 1}", "# a comment about kill", "shutil.rmtree(path)", "os.remove(name)", "fs.rmSync('x')",
	"open('f', 'w').close()", "File.truncate('x', 0)", "os.kill(pid, signal.SIGKILL)", "os.chmod(name, 0o777)", "subprocess.run(cmd)", "system 'ls'", "`ls`", "eval(text)",
	"requests.get(url)", "base64.b64decode(text)", "open('/etc/shadow')", "getattr(os, 'remove')(x)", "fs['rm' + 'Sync'](x)", "db.users.deleteMany({})", "db.a.drop()",
	"Remove-Item x", "sys.argv", "json.loads(text)", "re.compile(r'x')", strings.Repeat("long ", 200) + "os.unlink (x)", "p = Path(name)", "p.unlink()", "FileUtils.rm_rf 'x'",
	"requests.post(url, data=open('x').read())",
	"os.setuid(0)", "p.write_text('x')", "fs.writeFileSync('x', y)", "shutil.copy(a, b)", "file_get_contents('x')", "Path('x').read_text()", "(d / 'x').open('w')",
}

// TestSourceFindsWhatTheWholeTextHas compares matches near needed texts with
// those in the whole text.
func TestSourceFindsWhatTheWholeTextHas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	found := 0
	shell.New(inside(func(sh *shell.Shell) { found += compare(t, sh, r) })).Judge("rm x", 1<<40)
	if found < 100 {
		t.Errorf("only %d matches: the lines no longer fit the patterns", found)
	}
}

func compare(t *testing.T, sh *shell.Shell, r *rand.Rand) (found int) {
	for range 100 {
		var b strings.Builder
		for b.Len() < maxWhole+r.IntN(4*maxWhole) {
			if r.IntN(12) == 0 {
				b.WriteString(lines[r.IntN(len(lines))])
			} else {
				b.WriteString(lines[r.IntN(5)])
			}
			b.WriteByte('\n')
		}
		for name, re := range patterns {
			want := re.MatchString(b.String())
			if got := newSource(sh, b.String()).has(re); got != want {
				t.Fatalf("%s: found %v, want %v in\n%s", name, got, want, b.String())
			}
			if want {
				found++
			}
		}
	}
	return found
}

// TestMatchingTakesFromTheBudget checks that the time of matching is bounded: what
// is needed is everywhere, and nothing matches.
func TestMatchingTakesFromTheBudget(t *testing.T) {
	text := strings.Repeat("kill it\n", 8000)
	found, left := shell.New(inside(func(sh *shell.Shell) {
		if newSource(sh, text).has(codeKill) {
			t.Error("found a signal")
		}
	})).Judge("rm x", shell.Budget)
	if found != detector.Opaque || left >= 0 {
		t.Errorf("64 KiB are %q and leave %d of the budget", found.Words(), left)
	}
}

// inside is called by the shell for each command.
type inside func(*shell.Shell)

func (f inside) Call(sh *shell.Shell, _ string, _ []shell.Field, _ shell.Stream) shell.Stream {
	f(sh)
	return shell.Anything
}
func (inside) Code(*shell.Shell, string, string) {}
func (inside) Line(*shell.Shell, string) bool    { return false }
