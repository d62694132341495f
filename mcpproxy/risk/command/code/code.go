// Package code says what code of other languages does: Python, Perl, Ruby, Node
// and their like, SQL, PowerShell.
//
// Code of a programming language is not parsed. Calls that delete, run or send
// something are found by their names, wherever they are. Where code starts
// commands, its string literals are judged as commands; where it runs what is
// not written in it, it is Opaque.
//
// SQL is read in words, without a grammar of its own: what drops or empties
// something counts, what changes rows without a condition, and what has the
// database's server do something outside of it. The clients of databases are
// judged here too, by the statements they get.
//
// Package shell follows the commands in code, so all functions take the shell
// that runs the code.
//
// The files, from the top: database, powershell, batch, code, file, sends, source, sql,
// outside, function, cypher, effect, condition.
package code

import (
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/recipe"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// The calls of other languages that matter. The code is not parsed: a call is
// found by its name, wherever it is.
var (
	deletes = pattern{lazyregexp.New(`(?i)\b(?:rmtree|removedirs|remove_tree|rm_rf?|rm_f|remove_dir|remove_entry(?:_secure)?|rmSync|rmdirSync|unlinkSync|rimraf|emptyDirSync|removeSync|remove_file|send2trash|NSFileManager.*removeItem|deleteSync)\b` +
		`|\b(?:os|Path\([^)]*\)|fs|fsp|fsPromises|promises|FileUtils|File|Dir|Pathname|Deno|Bun|shutil|pathlib|io|posix|nt|unlink|shelljs|sh)['")\]]*\.(?:remove|removeSync|unlink|rm|rmdir|delete|rmtree|truncate)\b` +
		`|\.unlink\(|\.rmdir\(|\.truncate\(0?\)|\bdelete-(?:file|directory)\b|\btruncateSync\b|\bunlink\s*(?:\(|\$|@|glob|<|"|'|for\b|\w)|\brmdir\s*[("'$]|\bfrom\s+(?:os|shutil)\s+import\b[^;\n]*\b(?:remove|unlink|rmtree|rmdir|removedirs|truncate)\b` +
		`|\bdelete\s+(?:POSIX\s+)?file\b|\b(?:RemoveAll|deleteDir(?:ectory)?|deleteRecursively|deleteIfExists|remove_dir_all|rmTree|removeItem(?:AtPath)?|removeDirectoryRecursive|removePathForcibly)\b|\brm(?:_rf)?!?\s*\(`), 12}
	codeEmpty    = pattern{lazyregexp.New(`\bopen\([^()]*,\s*["']w[bt+]*["']\s*\)\s*\.close\(|\bwrite_text\(\s*["']{2}\s*\)|\bwriteFileSync\([^,()]*,\s*["']{2}\s*\)|\btruncate\s*\(?["'$@\w./]+,\s*0|\bFile\.truncate\b|\bFile\.write\([^,()]*,\s*["']{2}\)|\bfile_put_contents\([^,()]*,\s*["']{2}`), 5}
	codeKill     = pattern{lazyregexp.New(`(?:\bos\.kill(?:pg)?|\bprocess\.kill|\bProcess\.kill|(?:^|[^\w/|"'-])kill)\s*\(?[^;\n]*(?:\bSIGKILL\b|\bKILL\b|\b9\b)`), 1}
	codeMode     = pattern{lazyregexp.New(`\bchmod(?:Sync|_R)?\b[^;\n]*\b(?:0?o?(?:777|666|0777)|0?o?[46][0-7]{3})\b`), 1}
	codeRoot     = pattern{lazyregexp.New(`\bset(?:e|re|res)?uid\w*\s*\(?\s*0\b`), 1}
	codeFork     = pattern{lazyregexp.New(`(?s)\bfork\s+while\b|\bwhile\b.*\bfork\b|\bfork\s*(?:\(\))?\s*(?:until|;\s*redo)|\bloop\s*\{\s*fork|exec\s+\$0\s+if\s+fork`), 3}
	codeShutdown = pattern{lazyregexp.New(`(?i)\bapp "?(?:System Events|Finder)"? to (?:shut ?down|restart)|\bos\.reboot\b`), 1}
	codeExec     = pattern{lazyregexp.New("(?i)\\b(?:system|popen|popen[234]|spawn(?:Sync|v|l|lp|vp)?|exec(?:Sync|File|FileSync|v|ve|vp|l|lp|a)?|subprocess|check_(?:call|output)|getoutput|getstatusoutput|child_process|shell_exec|passthru|proc_open|qx|shellout|Open3|os\\.execute|io\\.popen|do (?:shell )?script|keystroke|run-(?:program|shell-command)|pty|backtick|start_process|Command)\\b|`|\\|\\s*getline|\\|\\s*[\"']|\\$`|%x"), 7}
	// a command that is not written in the code, or that the code prints to a shell
	codeRunsValue = pattern{lazyregexp.New(`\b(?:system|popen|exec(?:Sync|File|FileSync|v|ve|vp|l|lp)?|spawn(?:Sync|v|vp|l|lp)?|subprocess\.\w+|check_call|check_output|getoutput|Popen|shell_exec|passthru|proc_open|os\.execute)\b\s*\(?\s*\[?\s*(?:[$@]|[A-Za-z_][\w.]*\s*[,)\]+.(\[;}"]|[A-Za-z_][\w.]*\s*$)|\|\s*["'](?:/bin/|/usr/bin/)?(?:ba|da|z|k)?sh\b`), 3}
	codeInput     = pattern{lazyregexp.New(`\bARGV\b|\bargv\b|\$argv\b|\bstdin\b|\bSTDIN\b|\benviron\b|\bgetenv\b|\bENV\b|process\.env|<>|\binput\(|\bgets\b`), 5}
	codeEval      = pattern{lazyregexp.New(`\b(?:exec|eval|compile|execfile|__import__|instance_eval|class_eval|assert|create_function|Function|runpy|loadstring|loads?|vm\.run\w*|runIn\w*Context|importlib)\b\s*\(?`), 3}
	codeRemote    = pattern{lazyregexp.New(`(?i)\burlopen\b|\brequests\.|\burllib|\bhttps?\.(?:get|request)|\bfetch\(|\bhttp\.client|\bopen-uri|\bURI\.open|\bNet::HTTP|\bLWP::|\bcurl_exec|file_get_contents\(\s*["']http|\bOpenURI|\bURI\(`), 9}
	codeDecode    = pattern{lazyregexp.New(`(?i)\bb(?:64|32|85|16|ase64)|decode|\bunpack\b|\bpack\b|fromhex|\batob\b|Buffer\.from|\bcodecs\b|\bzlib\b|decompress|\bchr\b|fromCharCode|\brot13\b|\breverse\b|\[::-1\]|str_rot13|gzinflate|\bmarshal\b|\bpickle\b|\bhex2bin\b|\\(?:x[0-9a-f]{2}|1[0-7]{2})`), 10}
	codeSecret    = pattern{lazyregexp.New(`(?:\.ssh/id_|/etc/shadow|\.aws/credentials|\.netrc|\.git-credentials|\.pgpass|["'/]\.env["'])`), 2}
	codeSocket    = pattern{lazyregexp.New(`(?s)\bsocket\b.*\b(?:dup2|subprocess|pty|exec|spawn|system|/bin/)|\bfsockopen\b.*\b(?:exec|system|proc_open)|\bTCPSocket\b.*\b(?:exec|spawn|IO\.popen|sh)\b|\b(?:exec|spawn)\b.*\bTCPSocket\b|"/inet[46]?/(?:tcp|udp)/.*\bgetline\b`), 3}
	codeSends     = pattern{lazyregexp.New(`(?i)(?:\.(?:post|put|patch|urlopen|sendall|storbinary|post_form)|\bfetch|\burlopen|\brequests?\.request)!?\s*\([^\n;]*(?:\bopen\s*\(|read_?(?:bytes|text)\(|readFile|createReadStream|\bFile\.(?:read|open|binread)|file_get_contents\(|\bfiles\s*=)` +
		`|\bCURLOPT_(?:POSTFIELDS|INFILE)\b[^;\n]*(?:file_get_contents|CURLFile|curl_file_create|fopen)|file_get_contents\(\s*["']https?:[^;\n]*file_get_contents\(|["']content["']\s*=>\s*file_get_contents` +
		`|\bContent\s*=>\s*\[[^;\n]*=>\s*\[|->(?:post|put|request)\b[^;\n]*<(?-i:\$\w+|[A-Z]+)>|\bIO::Socket\b.*\bprint\b[^;\n]*<(?-i:\$\w+|[A-Z]+)>` +
		`|\brequest\s*\([^\n;]*\.(?:end|write)\s*\([^\n;]*(?:readFile|createReadStream)|\bcreateReadStream\([^\n;]*\.pipe\(\s*(?:req\b|request|https?\.|net\.|sock|client)`), 8}
	codeIndirect = pattern{lazyregexp.New(`\bgetattr\s*\(|\bglobals\s*\(\)|\b__builtins__|\b__dict__|\b(?:process|globalThis|global|this|require\(["']fs["']\)|fs|os)\[[^\]'"]*['"][^'"]*['"]\s*\+|\.(?:send|public_send)\s*\(?|&\{|\bcall_user_func`), 4}
)

var (
	codeDeleteByName = pattern{lazyregexp.New(`\[\s*['"](?:rm|unlink|rmdir)\w*['"]\s*\]|\[\s*['"](?:remove|delete)\w*['"]\s*\]\s*\(|\(\s*['"](?:unlink|rmdir|rmtree|remove_tree|removedirs)['"]\s*[,)]|\b(?:getattr|send|public_send|method)\s*\(?[^;\n]*\b(?:remove|unlink|rmtree|delete|rm_rf?)\b`), 2}
	perlUnlink       = pattern{lazyregexp.New(`\bunlink\s*(?:[;})]|$)`), 1}
)

// emptyLiterals returns the code without what is quoted in it.
func emptyLiterals(text string) string {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		b = append(b, text[i])
		if q := text[i]; q == '"' || q == '\'' {
			j := i + 1
			for ; j < len(text) && text[j] != q && text[j] != '\n'; j++ {
				if text[j] == '\\' {
					j++
				}
			}
			if j < len(text) && text[j] == q {
				b = append(b, q)
				i = j
			}
		}
	}
	return string(b)
}

// Judge judges code of another language than the shell's.
func Judge(s *shell.Shell, language, text string) {
	if text == "" || !s.Spend(len(text)) {
		return
	}
	if !s.Enter() {
		return
	}
	defer s.Leave()
	src := newSource(s, text)
	for _, rule := range [...]struct {
		pattern pattern
		found   detector.Set
	}{
		{codeEmpty, detector.EmptyFile}, {codeKill, detector.Kill}, {codeMode, detector.PermissionsAll},
		{codeShutdown, detector.Shutdown}, {codeSecret, detector.CredentialRead},
		{codeSends, detector.Exfiltration}, {codeRoot, detector.PrivilegeEscalation},
	} {
		if src.has(rule.pattern) {
			s.Add(rule.found)
		}
	}
	if sendsVariable(src) {
		s.Add(detector.Exfiltration)
	}
	if strings.Contains(text, "fork") && src.hasAnywhere(codeFork) { // all of its forms have it
		s.Add(detector.ForkBomb)
	}
	if src.hasAnywhere(codeSocket) {
		s.Add(detector.Exfiltration)
	}
	plain := newSource(s, emptyLiterals(text))
	if language != "awk" && language != "tcl" && (plain.has(deletes) || src.has(codeDeleteByName) || language == "perl" && plain.hasAnywhere(perlUnlink)) {
		s.Add(detector.ForcedDelete)
		if strings.Contains(text, "tree") || strings.Contains(text, "recursive") || strings.Contains(text, "rm_r") {
			s.Add(detector.RecursiveDelete)
		}
	}
	if language == "osascript" && strings.Contains(text, "make") && strings.Contains(text, "login item") {
		s.Add(detector.Persistence)
	}
	if language == "tcl" && strings.Contains(text, "file delete") ||
		language == "osascript" && strings.Contains(text, "Finder") && shell.HasAny(text, "empty trash", "empty the trash", "delete ") {
		s.Add(detector.ForcedDelete)
	}
	if language == "tcl" {
		for command := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
			verb, program, _ := strings.Cut(strings.TrimSpace(command), " ")
			if verb == "spawn" || verb == "exec" {
				s.Run(strings.TrimPrefix(strings.TrimSpace(program), "-noecho "), shell.Stream{})
			}
		}
	}
	execs := src.has(codeExec) || (language == "groovy" || language == "lua") && strings.Contains(text, ".execute") ||
		strings.HasPrefix(language, "scala") && strings.Contains(text, ".!")
	if execs || language == "tcl" {
		Literals(s, text)
		if (src.hasAnywhere(codeRunsValue) || src.has(codeInput)) &&
			(language != "node" || strings.Contains(text, "child_process") || strings.Contains(text, "Bun")) && language != "tcl" {
			s.Add(detector.Opaque)
		}
	}
	if evals := src.has(codeEval); (evals || execs) && language != "awk" {
		if src.has(codeRemote) {
			s.Add(detector.RemoteExec | detector.Opaque)
		}
		if src.has(codeDecode) {
			s.Add(detector.DecodedExec | detector.Opaque)
		}
		if evals && !(s.Spend((codeEval.cost+literalEval.cost)*len(text)) && evalsLiteral(text)) {
			s.Add(detector.Opaque)
		} else if evals {
			for _, lit := range stringLiterals(text) {
				Judge(s, language, lit)
			}
		}
	}
	if src.has(codeIndirect) && language != "ruby" && language != "perl" {
		s.Add(detector.Opaque)
	}
	if strings.Contains(text, "execute(") || strings.Contains(text, "executescript(") || strings.Contains(text, "query(") || strings.Contains(text, "exec(") {
		for _, lit := range stringLiterals(text) {
			if IsSQL(lit) {
				SQL(s, lit)
			}
		}
	}
	files(src) // last, as these take most of the budget
	if sendsRead(src) {
		s.Add(detector.Exfiltration)
	}
}

var literalEval = pattern{lazyregexp.New(`\b(?:eval|exec|compile|assert|__import__|loads?|importlib)\s*\(?\s*["'][^"']*["']|\bjson\.loads?\b|\bast\.literal_eval\b|\bre\.compile\b|\bRegExp\b|\.exec\(|\bcompile\s*\(\s*r?["']|\bfs\.exec|\.(?:eval|compile)\(\s*(?:\)|\w+\s*=[^=])`), 5}

// evalsLiteral reports whether all that looks like the evaluation of code is of literals.
func evalsLiteral(text string) bool {
	return len(codeEval.FindAllStringIndex(text, maxLiterals)) <= len(literalEval.FindAllStringIndex(text, maxLiterals))
}

// called finds the functions that run commands, and what begins their argument.
var called = pattern{lazyregexp.New(`(?i)(?:system|exec(?:ute)?|shell(?:-command)?|spawn|popen|command|cmd|syscmd|process|write18|run)[\s({"'\x60\[]+`), 8}

// Called runs the commands that code of a language without rules gives to such a function.
func Called(s *shell.Shell, text string) {
	if !strings.ContainsAny(text, "({\"") || !s.Spend(len(text)*called.cost) {
		return
	}
	for _, m := range called.FindAllStringIndex(text, maxLiterals) {
		command := text[m[1]:]
		if words := stringLiterals(text[m[1]-1 : min(len(text), m[1]+maxArgs)]); len(words) > 1 && trigger.Runs(words[0]) {
			command, _, _ = strings.Cut(text[m[1]-1:], ")")
			command = strings.Join(stringLiterals(command), " ") // of cmd("rm", ["-r", …])
		}
		if end := strings.IndexAny(command, "\"'`)}\n"); end >= 0 {
			command = command[:end]
		}
		if recipe.IsCommand(command) {
			s.MaybeRun(command)
		}
	}
}

// Literals runs the string literals of code that starts commands: each alone,
// and all of them as the words of one command.
func Literals(s *shell.Shell, text string) {
	lits := stringLiterals(text)
	if len(lits) == 0 {
		return
	}
	for _, command := range joins(text) {
		s.MaybeRun(command)
	}
	fields := make([]shell.Field, 0, len(lits))
	for _, lit := range lits {
		if strings.HasSuffix(lit, " ") {
			s.MaybeRun(lit + "${_}") // the code adds a word
		} else {
			s.MaybeRun(lit)
		}
		if strings.ContainsAny(lit, " \t\n") || len(fields) > maxLiterals {
			continue
		}
		if len(fields) == 0 && !trigger.Has(shell.BaseName(lit)) {
			continue // a module's name in front of the command's
		}
		fields = append(fields, shell.Field{Text: lit})
	}
	if len(fields) > 1 {
		s.MaybeCommand(fields, shell.Stream{})
	}
}
