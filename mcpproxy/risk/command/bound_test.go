package command

import (
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// judgeAll judges the text without the gate and without catching a panic.
func judgeAll(text string) detector.Set {
	found, _ := shell.New(programs{}).Judge(text, Budget)
	return found
}

// hostile are texts of 64 KiB that are made to be slow.
func hostile() map[string]string {
	texts := map[string]string{}
	for name, unit := range map[string]string{
		"parentheses": "(", "substitutions": "$(", "braces": "{ ", "if": "if ", "commands": "rm;", "pipes": "rm|", "and": "rm&&", "documents": "cat <<a\n", "backquotes": "`", "arithmetic": "$((", "arrays": "${a[",
		"defaults": "${a:-", "functions": "f(){ ", "case": "case a in a) ", "words": "rm ", "lines": "rm\n", "quotes": "'rm' ", "sequences": "{1..9}", "escapes": "\\r\\m ", "eval": "eval ", "shells": "sh -c '", "assignments": "a=$a$a;",
		"double": "\"$(", "brackets": "[[ ", "loops": "for i in a b c; do ", "sql": "psql -c 'delete from a;' ", "python": "python -c 'system(' ", "alias": "alias a=b;", "echo": "echo rm | sh;", "words in braces": "{rm,", "operators": "<><><>",
		"xargs": "xargs ", "sudo": "sudo ", "unparsable": "rm '\n", "open": "rm x; \"", "increments": "((i++", "minus": "$((-", "not": "! ", "tests": "[[ ! ", "functions2": "f(){ g;}; ", "bind": "a=1\n", "sed": "sed s/a/b/e;",
		"lines of a word": "$(echo rm||echo a) ", "lines of quoted words": "\"$(echo rm||echo sudo)\" ", "commands of several lines": "x=\"rm\na\nb\";$x;",
	} {
		texts[name] = strings.Repeat(unit, shell.MaxText/len(unit))
	}
	items := " in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
	texts["nested loops"] = strings.Repeat("for i"+items, 8) + "rm $i; " + strings.Repeat("done; ", 8)
	texts["nested calls"] = strings.Repeat("f() { g; g; g; g; }; ", 200) + "g() { h; h; h; h; }; h() { i; i; i; i; }; i() { rm $1; $1; }; f; f; f; f; f"
	texts["nested texts"] = strings.Repeat("x='$x; $x; eval \"$x; $x\"'; ", 100) + "eval \"$x\""
	texts["long value"] = "x=" + strings.Repeat("rm ", 1300) + "; " + strings.Repeat("$x; ", 1000)
	for name, unit := range map[string]string{
		"code without calls": "for line in lines: print(line.strip())\n", "code with needed words": "kill it, exec system open( .remove unlink\n", "code on one line": "unlink kill exec ",
	} {
		texts[name] = "python3 -c '" + strings.Repeat(unit, (shell.MaxText-16)/len(unit)) + "'"
	}
	texts["braces in words"] = strings.Repeat("rm "+strings.Repeat("{a", 140)+";", shell.MaxText/300)
	texts["wildcards"] = "eval '" + strings.Repeat("?", shell.MaxText-16) + "'"
	texts["redirections"] = strings.Repeat(">", shell.MaxText)
	texts["outputs"] = strings.Repeat("echo > x ", shell.MaxText/9)
	texts["patterns"] = strings.Repeat("eval? ", shell.MaxText/6)
	texts["stars"] = "sudo " + strings.Repeat("*?", shell.MaxText/2-16)
	texts["powershell"] = "powershell -c '" + strings.Repeat("git x;", shell.MaxText/8) + "'"
	texts["credentials"] = strings.Repeat("head ~/.aws/credentials ", shell.MaxText/24)
	texts["assignments in one command"] = strings.Repeat("x+=y\tx+=y/* ", shell.MaxText/13)
	texts["patterns of commands"] = strings.Repeat("unlink?psqlinserttestpowershell-execkubectlwhere\n/*", 1200)
	texts["short patterns of commands"] = strings.Repeat("*?*r*m*;", 8000)
	texts["quoted document"] = "cat <<'a'\n" + strings.Repeat("(", shell.MaxText-16)
	texts["document behind arithmetic"] = "let x<<'a'\n" + strings.Repeat("$((", shell.MaxText/3-8)
	texts["document in a comment"] = "# <<'a'\n" + strings.Repeat("{ ", shell.MaxText/2-8)
	texts["document of another line"] = "cat <<'a' <<'b'\na\n" + strings.Repeat("( ", shell.MaxText/2-16)
	texts["code that nearly matches"] = "python3 - <<'a'\n" + strings.Repeat("terminator unlinked while forks socket\n", (shell.MaxText-32)/39) + "a"
	for name, text := range longInLoop() {
		texts[name+" in a loop"] = text
	}
	texts["short options"] = "tar " + strings.Repeat("x", shell.MaxText-16)
	texts["conditions"] = "psql -c 'delete from a where " + strings.Repeat("1=2 or ", shell.MaxText/7-16) + "1=1'"
	texts["nested conditions"] = "psql -c 'delete from a where " + strings.Repeat("(", shell.MaxText-64) + "'"
	texts["unpacked paths"] = "curl x|tar xz;" + strings.Repeat("./a/b/c/d/e/f/g/h/i;", shell.MaxText/20-16)
	texts["substitutions that are sent"] = "curl " + strings.Repeat("\"?$(cat x)\" ", shell.MaxText/12-16)
	texts["variables that are sent"] = "python3 -c 'a=open(1); " + strings.Repeat("b=open(2); ", 8) + "x.post(" + strings.Repeat("a=a ", shell.MaxText/4-64) + "'"
	texts["calls that send"] = "python3 -c 'a=open(1)\n" + strings.Repeat("x.post(y=a)\n", shell.MaxText/12-8) + "'"
	texts["files of variables"] = "python3 -c '" + strings.Repeat("a==open(a,1)\n", shell.MaxText/13-8) + "'"
	texts["files without an end"] = "python3 -c '" + strings.Repeat("open(a.write_text(", shell.MaxText/18-8) + "'"
	texts["lines of PowerShell"] = "rm '\n" + strings.Repeat("irm x -Body (\n", shell.MaxText/15)
	texts["entered directories"] = "git clone h:/a;" + strings.Repeat("cd a/b/c/d/e/f/g;", shell.MaxText/17-16)
	for name, words := range map[string][2]string{
		"reg": {"reg add hk ", "clsid autorun /d 0 "}, "modprobe": {"modprobe -a ", "nf_a "}, "scale": {"fly scale ", "--count 1 "}, "mount": {"mount -B ", "/proc/1 "},
		"aws": {"aws ", "x/AdministratorAccess "}, "gem": {"gem ", "http://a "}, "tee": {"tee ", "-f a "}, "jq": {"jq ", "-f a "}, "helm": {"helm install ", "https://a "},
		"knex": {"knex --", "x migrate:rollback --"}, "privileged": {"docker run ", "-e a --privileged "},
	} {
		texts["arguments of "+name] = words[0] + strings.Repeat(words[1], (shell.MaxText-16)/len(words[1]))
	}
	for name, unit := range map[string]string{"home and end": "\x01\x05", "words that come back": "\x17\x19\x19", "lines that come back": "\x01\x0b\x19", "kills": "\x15\x19"} {
		texts[name] = strings.Repeat("rm ", shell.MaxText/6) + strings.Repeat(unit, shell.MaxText/2/len(unit))
	}
	for name, unit := range map[string]string{"procedures": "xp_cmdshell (", "files": "lo_export (", "scripts": "sp_execute_external_script 'x' ", "statements": "sp_executesql 'x' ", "settings": "sp_configure 'x',"} {
		texts["SQL's "+name] = "psql -c \"exec " + strings.Repeat(unit, (shell.MaxText-32)/len(unit)) + "\""
	}
	texts["holes"] = strings.Repeat("rm$a b$c;", 5000)
	return texts
}

// longInLoop returns loops whose body reads something long 256 times.
func longInLoop() map[string]string {
	long := strings.Repeat("A=", (shell.MaxText-256)/2)
	items := " in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
	texts := map[string]string{}
	for name, body := range map[string]string{
		"word": "rm x " + long, "options": "rm -" + long, "long option": "rm --" + long, "name": "rm-" + long + " x", "input": "rm < " + long, "output": "rm > " + long, "text": "rm <<< " + long,
		"document": "rm <<a\n" + long + "\na\n:", "case": "case " + long + " in a) rm;; esac", "default": "rm ${x:-" + long + "}", "replacement": "x=" + long[:2000] + "; rm ${x//A/" + long[:2000] + "}",
		"items": "for k in " + long + "; do rm; done", "array": "x=(" + long + "); rm", "declaration": "export x=" + long + "; rm", "loaded code": "LD_PRELOAD=" + long + " rm x",
		"path": "rm /auditproxy" + strings.Repeat("/.config/", shell.MaxText/10), "written path": "rm > /auditproxy" + strings.Repeat("/.config/", shell.MaxText/10),
	} {
		texts[name] = "for i" + items + "for j" + items + body + "; done; done"
	}
	return texts
}

// TestLongTextInALoopCosts requires that reading something long takes from the
// budget each time.
func TestLongTextInALoopCosts(t *testing.T) {
	for name, text := range longInLoop() {
		if found := judgeAll(text); found&detector.Opaque == 0 {
			t.Errorf("%s: 16 MB were read: %q", name, found.Words())
		}
	}
	if found := judgeAll("for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8; do cp x /" + strings.Repeat("a", 200) + "; done; done"); found&detector.Opaque != 0 {
		t.Errorf("a loop over an ordinary path: %q", found.Words())
	}
}

// TestBracesCost requires that the braces of a word take from the budget: the library
// that reads them copies what is in a brace to the one around it.
func TestBracesCost(t *testing.T) {
	for text, want := range map[string]bool{
		"rm " + strings.Repeat("{", 1400):                                  true,
		"rm " + strings.Repeat(",{", 700):                                  true,
		"rm " + strings.Repeat("{", 700) + strings.Repeat("}", 700):        true,
		"rm " + strings.Repeat("{\"\",", 700):                              true,
		"cp x{,.bak}; mkdir -p {a,b}/{c,d}":                                false,
		"curl -d " + strings.Repeat(`{"a":`, 60) + strings.Repeat("}", 60): false,
	} {
		if found := judgeAll(text); found&detector.Opaque != 0 != want {
			t.Errorf("%.40s: %q, opaque %v, want %v", text, found.Words(), !want, want)
		}
	}
}

// TestHostileTextIsBounded requires the budget to hold, which bounds the time.
func TestHostileTextIsBounded(t *testing.T) {
	for name, text := range hostile() {
		start := time.Now()
		_, left := shell.New(programs{}).Judge(text, Budget)
		t.Logf("%s: %v, budget left %d", name, time.Since(start), left)
		if left < -5*shell.MaxText {
			t.Errorf("%s: %d beyond the budget", name, -left)
		}
	}
}

// TestLongCodeIsRead has code of lengths that agents write, in which nothing matters.
func TestLongCodeIsRead(t *testing.T) {
	code := "def summary(rows, skipinitialspace=False):\n    total = 0\n    while total < len(rows):\n        total += len(rows[total].strip())\n    return {'total': total}\n\n"
	long := func(n int) string { return strings.Repeat(code, n/len(code)) }
	for name, text := range map[string]string{
		"a script that is run":     "python3 - <<'EOF'\n" + long(24<<10) + "EOF\n",
		"a script that is written": "cd /srv/app && cat > summary.py <<'EOF'\n" + long(24<<10) + "EOF\npython3 summary.py\n",
		"a file":                   "cat >src/summary.py <<-\"EOF\"\n" + long(60<<10) + "\tEOF\nrm -i x",
	} {
		if found := judgeAll(text); found&detector.Opaque != 0 {
			t.Errorf("%s, %d bytes: %q", name, len(text), found.Words())
		}
	}
	// What is behind the document is read, too.
	if found := judgeAll("cat > x <<'EOF'\n" + long(60<<10) + "EOF\nrm -rf /srv"); found&detector.RecursiveDelete == 0 {
		t.Errorf("a command behind a file: %q", found.Words())
	}
}

func BenchmarkCommand(b *testing.B) {
	for name, text := range map[string]string{
		"ls": "ls -la", "prose": "The tests pass, and the parser handles the empty list.", "grep": "grep -rn 'func main' . | head -5", "redirect": "make test > out.log 2>&1",
		"rm": "rm -rf build", "git": "git -C repo push --force origin main", "nested": "sudo bash -c 'cd /srv && ssh web1 \"rm -rf app\"'",
	} {
		b.Run(name, func(b *testing.B) { benchmarkText(b, text) })
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) { benchmarkText(b, text) })
	}
}

func benchmarkText(b *testing.B, text string) {
	c := New(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		does(c, text)
	}
}

// FuzzCommand requires that no text panics or exceeds the budget, and that no
// text hides a command in front of it.
func FuzzCommand(f *testing.F) {
	for _, v := range append(readVectors(f), readCases(f)...) {
		f.Add(v.Command)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > shell.MaxText-16 {
			return
		}
		if _, left := shell.New(programs{}).Judge(text, Budget); left < -5*shell.MaxText {
			t.Errorf("%d beyond the budget", -left)
		}
		if judgeAll("rm -rf x\n"+text) == 0 {
			t.Error("a command in the line above is hidden")
		}
		if strings.HasPrefix(text, "\x15") || strings.HasPrefix(text, "\b") || strings.HasPrefix(text, "\x7f") {
			return
		}
		if trigger.Scan(text)&trigger.Word != 0 && len(text) > shell.MaxText && does(New(nil), text)&detector.Opaque == 0 {
			t.Error("a text that is too long is not opaque")
		}
	})
}
