package risk

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"

	"auditproxy/internal/lazyregexp"
)

// The calls of other languages that matter. The code is not parsed: a call is
// found by its name, wherever it is.
var (
	codeDelete = lazyregexp.New(`(?i)\b(?:rmtree|removedirs|remove_tree|rm_rf?|rm_f|remove_dir|remove_entry(?:_secure)?|rmSync|rmdirSync|unlinkSync|rimraf|emptyDirSync|removeSync|remove_file|send2trash|NSFileManager.*removeItem|deleteSync)\b` +
		`|\b(?:os|Path\([^)]*\)|fs|fsp|fsPromises|promises|FileUtils|File|Dir|Pathname|Deno|Bun|shutil|pathlib|io|posix|nt|unlink|shelljs|sh)['")\]]*\.(?:remove|removeSync|unlink|rm|rmdir|delete|rmtree|truncate)\b` +
		`|\.unlink\(|\.rmdir\(|\.truncate\(0?\)|\bdelete-(?:file|directory)\b|\btruncateSync\b|\bunlink\s*(?:\(|\$|@|glob|<|"|'|for\b|\w)|\brmdir\s*\(` +
		`|\bdelete\s+(?:POSIX\s+)?file\b`)
	codeEmpty    = lazyregexp.New(`\bopen\([^()]*,\s*["']w[bt+]*["']\s*\)\s*\.close\(|\bwrite_text\(\s*["']{2}\s*\)|\bwriteFileSync\([^,()]*,\s*["']{2}\s*\)|\btruncate\s*\(?["'$@\w./]+,\s*0|\bFile\.truncate\b|\bFile\.write\([^,()]*,\s*["']{2}\)|\bfile_put_contents\([^,()]*,\s*["']{2}`)
	codeKill     = lazyregexp.New(`\b(?:os\.kill(?:pg)?|process\.kill|Process\.kill|kill)\s*\(?[^;\n]*(?:\bSIGKILL\b|\bKILL\b|\b9\b)`)
	codeMode     = lazyregexp.New(`\bchmod(?:Sync|_R)?\b[^;\n]*\b0?o?(?:777|666|0777)\b`)
	codeFork     = lazyregexp.New(`(?s)\bfork\s+while\b|\bwhile\b.*\bfork\b|\bfork\s*(?:\(\))?\s*(?:until|;\s*redo)|\bloop\s*\{\s*fork|exec\s+\$0\s+if\s+fork`)
	codeShutdown = lazyregexp.New(`(?i)\bapp "?(?:System Events|Finder)"? to (?:shut ?down|restart)|\bos\.reboot\b`)
	codeExec     = lazyregexp.New("(?i)\\b(?:system|popen|popen[234]|spawn(?:Sync|v|l|lp|vp)?|exec(?:Sync|File|FileSync|v|ve|vp|l|lp|a)?|subprocess|check_(?:call|output)|getoutput|getstatusoutput|child_process|shell_exec|passthru|proc_open|qx|shellout|Open3|os\\.execute|io\\.popen|do shell script|pty|backtick|start_process|Command)\\b|`|\\|\\s*getline|\\|\\s*[\"']|\\$`|%x")
	// a command that is not written in the code, or that the code prints to a shell
	codeRunsValue = lazyregexp.New(`\b(?:system|popen|exec(?:Sync|File|FileSync|v|ve|vp|l|lp)?|spawn(?:Sync|v|vp|l|lp)?|subprocess\.\w+|check_call|check_output|getoutput|Popen|shell_exec|passthru|proc_open|os\.execute)\b\s*\(?\s*\[?\s*(?:[$@]|[A-Za-z_][\w.]*\s*[,)\]+.(\[;}]|[A-Za-z_][\w.]*\s*$)|\|\s*["'](?:/bin/|/usr/bin/)?(?:ba|da|z|k)?sh\b`)
	codeInput     = lazyregexp.New(`\bARGV\b|\bargv\b|\$argv\b|\bstdin\b|\bSTDIN\b|\benviron\b|\bgetenv\b|\bENV\b|process\.env|<>|\binput\(|\bgets\b`)
	codeEval      = lazyregexp.New(`\b(?:exec|eval|compile|execfile|__import__|instance_eval|class_eval|assert|create_function|Function|runpy|loadstring|loads?|vm\.run\w*|importlib)\s*\(?`)
	codeRemote    = lazyregexp.New(`(?i)\burlopen\b|\brequests\.|\burllib|\bhttps?\.(?:get|request)|\bfetch\(|\bhttp\.client|\bopen-uri|\bURI\.open|\bNet::HTTP|\bLWP::|\bcurl_exec|file_get_contents\(\s*["']http|\bOpenURI|\bURI\(`)
	codeDecode    = lazyregexp.New(`(?i)\bb(?:64|32|85|16|ase64)|decode|\bunpack\b|\bpack\b|fromhex|\batob\b|Buffer\.from|\bcodecs\b|\bzlib\b|decompress|\bchr\b|fromCharCode|\brot13\b|\breverse\b|\[::-1\]|str_rot13|gzinflate|\bmarshal\b|\bpickle\b|\bhex2bin\b|\\x[0-9a-f]{2}`)
	codeSecret    = lazyregexp.New(`(?:\.ssh/id_|/etc/shadow|\.aws/credentials|\.netrc|\.git-credentials|\.pgpass|["'/]\.env["'])`)
	codeSocket    = lazyregexp.New(`(?s)\bsocket\b.*\b(?:dup2|subprocess|pty|exec|spawn|system|/bin/)|\bfsockopen\b.*\b(?:exec|system|proc_open)|\bTCPSocket\b.*\b(?:exec|spawn|IO\.popen|sh)\b`)
	codeIndirect  = lazyregexp.New(`\bgetattr\s*\(|\bglobals\s*\(\)|\b__builtins__|\b__dict__|\b(?:process|globalThis|global|this|require\(["']fs["']\)|fs|os)\[[^\]'"]*['"][^'"]*['"]\s*\+|\.(?:send|public_send)\s*\(?|&\{|\bcall_user_func`)
)

var (
	codeDeleteByName = lazyregexp.New(`\[\s*['"](?:rm|unlink|rmdir|remove|delete)\w*['"]\s*\]|\b(?:getattr|send|public_send|method)\s*\(?[^;\n]*\b(?:remove|unlink|rmtree|delete|rm_rf?)\b`)
	perlUnlink       = lazyregexp.New(`\bunlink\s*(?:[;})]|$)`)
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

// code judges code of another language than the shell's.
func (s *shell) code(language, text string) {
	if text == "" || !s.spend(4*len(text)) {
		return
	}
	if s.depth >= maxDepth {
		s.found |= Opaque
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	for _, rule := range [...]struct {
		pattern lazyregexp.Regexp
		found   Detectors
	}{
		{codeEmpty, EmptyFile}, {codeKill, Kill}, {codeMode, PermissionsAll},
		{codeFork, ForkBomb}, {codeShutdown, Shutdown}, {codeSecret, CredentialRead}, {codeSocket, Exfiltration},
	} {
		if rule.pattern.MatchString(text) {
			s.found |= rule.found
		}
	}
	plain := emptyLiterals(text)
	if language != "awk" && language != "tcl" && (codeDelete.MatchString(plain) || codeDeleteByName.MatchString(text) || language == "perl" && perlUnlink.MatchString(plain)) {
		s.found |= ForcedDelete
		if strings.Contains(text, "tree") || strings.Contains(text, "recursive") || strings.Contains(text, "rm_r") {
			s.found |= RecursiveDelete
		}
	}
	if language == "tcl" && strings.Contains(text, "file delete") {
		s.found |= ForcedDelete
	}
	execs := codeExec.MatchString(text)
	if execs || language == "tcl" {
		s.literals(text)
		if (codeRunsValue.MatchString(text) || codeInput.MatchString(text)) && (language != "node" || strings.Contains(text, "child_process") || strings.Contains(text, "Bun")) && language != "tcl" {
			s.found |= Opaque
		}
	}
	if evals := codeEval.MatchString(text); (evals || execs) && language != "awk" {
		if codeRemote.MatchString(text) {
			s.found |= RemoteExec | Opaque
		}
		if codeDecode.MatchString(text) {
			s.found |= DecodedExec | Opaque
		}
		if evals && !evalsLiteral(text) {
			s.found |= Opaque
		} else if evals {
			for _, lit := range stringLiterals(text) {
				s.code(language, lit)
			}
		}
	}
	if codeIndirect.MatchString(text) && language != "ruby" && language != "perl" {
		s.found |= Opaque
	}
	if strings.Contains(text, "execute(") || strings.Contains(text, "executescript(") || strings.Contains(text, "query(") || strings.Contains(text, "exec(") {
		for _, lit := range stringLiterals(text) {
			if isSQL(lit) {
				s.sql(lit)
			}
		}
	}
}

var literalEval = lazyregexp.New(`\b(?:eval|exec|compile|assert|__import__|loads?|importlib)\s*\(?\s*["'][^"']*["']|\bjson\.loads?\b|\bast\.literal_eval\b|\bre\.compile\b|\bRegExp\b|\.exec\(|\bcompile\s*\(\s*r?["']|\bfs\.exec`)

// evalsLiteral reports whether all that looks like the evaluation of code is of literals.
func evalsLiteral(text string) bool {
	return len(codeEval.FindAllStringIndex(text, maxExpanded)) <= len(literalEval.FindAllStringIndex(text, maxExpanded))
}

// literals runs the string literals of code that starts commands: each alone,
// and all of them as the words of one command.
func (s *shell) literals(text string) {
	lits := stringLiterals(text)
	if len(lits) == 0 {
		return
	}
	fields := make([]field, 0, len(lits))
	for _, lit := range lits {
		if strings.HasSuffix(lit, " ") {
			s.maybeRun(lit + "${_}") // the code adds a word
		} else {
			s.maybeRun(lit)
		}
		if strings.ContainsAny(lit, " \t\n") || len(fields) > maxExpanded {
			continue
		}
		if len(fields) == 0 && !isTriggerWord(baseName(lit)) {
			continue // a module's name in front of the command's
		}
		fields = append(fields, field{s: lit})
	}
	if len(fields) > 1 {
		s.branch++
		s.command(fields, stream{})
		s.branch--
	}
}

// stringLiterals returns what is quoted in code.
func stringLiterals(text string) []string {
	var out []string
	for i := 0; i < len(text) && len(out) < 4*maxExpanded; i++ {
		q := text[i]
		end := q
		switch q {
		case '"', '\'', '`':
		case '{', '(':
			// qx{…}, %x(…), qw(…)
			if i < 2 || text[i-2:i] != "qx" && text[i-2:i] != "%x" && text[i-2:i] != "qw" && text[i-2:i] != "%w" {
				continue
			}
			end = q + 2
			if q == '(' {
				end = ')'
			}
		default:
			continue
		}
		var b strings.Builder
		j := i + 1
		for ; j < len(text) && text[j] != end; j++ {
			if text[j] == '\\' && j+1 < len(text) {
				j++
			}
			b.WriteByte(text[j])
		}
		if j == len(text) {
			break
		}
		out = append(out, b.String())
		i = j
	}
	return out
}

// isSQL reports whether a line begins as a statement of SQL.
func isSQL(line string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	second, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(rest)), " ")
	switch strings.ToUpper(first) {
	case "SELECT", "WITH", "EXPLAIN":
		upper := strings.ToUpper(rest)
		return strings.Contains(upper, "FROM") || strings.Contains(upper, " AS ")
	case "INSERT", "REPLACE":
		return second == "INTO" || second == "IGNORE"
	case "DELETE":
		return second == "FROM"
	case "UPDATE":
		return strings.Contains(strings.ToUpper(rest), "SET ")
	case "DROP", "ALTER", "CREATE", "TRUNCATE", "GRANT", "REVOKE":
		return second != ""
	}
	return false
}

// sql judges statements of SQL: those that drop or empty something, and those
// that delete or change all rows.
func (s *shell) sql(text string) {
	if !s.spend(4 * len(text)) {
		return
	}
	var words []string
	end := func() {
		if unfiltered(words) {
			s.found |= SQLUnfiltered
		}
		words = words[:0]
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '-' && strings.HasPrefix(text[i:], "--"), c == '#' && (i == 0 || text[i-1] == '\n'):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			if strings.HasPrefix(text[i:], "/*!") || strings.HasPrefix(text[i:], "/*M!") {
				i += 3 // MySQL runs it
				for i < len(text) && text[i] >= '0' && text[i] <= '9' {
					i++
				}
				continue
			}
			n := strings.Index(text[i:], "*/")
			if n < 0 {
				n = len(text) - i - 2
			}
			i += n + 2
		case c == '\'' || c == '"' || c == '`' || c == '[':
			closing := c
			if c == '[' {
				closing = ']'
			}
			n := strings.IndexByte(text[i+1:], closing)
			if n < 0 {
				n = len(text) - i - 2
			}
			if c == '\'' && len(words) > 0 && oneOf(words[len(words)-1], "EXECUTE", "IMMEDIATE", "EXEC", "PREPARE") {
				s.sql(text[i+1 : i+1+max(n, 0)])
			}
			words = append(words, "'")
			i += max(n, 0) + 2
		case c == '$' && strings.HasPrefix(text[i:], "$$"):
			i += 2 // the body of DO or of a function
			end()
		case c == ';':
			end()
			i++
		case c == '\\':
			line, _, _ := strings.Cut(text[i:], "\n")
			if cmd, ok := strings.CutPrefix(line, `\!`); ok {
				s.run(cmd, stream{})
			}
			if cmd, ok := strings.CutPrefix(line, `\g |`); ok {
				s.run(cmd, stream{})
			}
			i += len(line)
		case gateClass[c] == classWord:
			j := i
			for j < len(text) && gateClass[text[j]] == classWord {
				j++
			}
			word := strings.ToUpper(text[i:j])
			if oneOf(word, "BEGIN", "THEN", "ELSE", "LOOP") && len(words) > 0 && !oneOf(word, "ELSE") {
				end()
			} else {
				words = append(words, word)
			}
			i = j
		case c == '=' || c == '(' || c == ')' || c == ',' || c == '<' || c == '>':
			words = append(words, text[i:i+1])
			i++
		case c == '.' && (i == 0 || text[i-1] == '\n'):
			line, _, _ := strings.Cut(text[i:], "\n")
			for _, shell := range [...]string{".shell ", ".system ", ".sh "} {
				if cmd, ok := strings.CutPrefix(line, shell); ok {
					s.run(cmd, stream{})
				}
			}
			i += len(line)
		default:
			i++
		}
	}
	end()
	for line := range strings.Lines(text) {
		if cmd, ok := strings.CutPrefix(strings.TrimSpace(line), "system "); ok {
			s.maybeRun(cmd)
		}
	}
}

// unfiltered judges the words of one statement.
func unfiltered(words []string) bool {
	for len(words) > 0 && oneOf(words[0], "EXPLAIN", "ANALYZE", "VERBOSE", "BEGIN", "DO", "IF", "EXISTS", "START", "USE") {
		if words[0] == "EXPLAIN" && !oneOf(at(words, 1), "ANALYZE", "(") {
			return false
		}
		words = words[1:]
	}
	if len(words) < 2 {
		return false
	}
	if words[0] == "WITH" || words[0] == "EXECUTE" {
		for i, w := range words {
			if (w == "DELETE" && at(words, i+1) == "FROM" || w == "UPDATE") && i > 0 && unfiltered(words[i:]) {
				return true
			}
		}
		return false
	}
	switch words[0] {
	case "DROP":
		return !oneOf(words[1], "PREPARE")
	case "TRUNCATE":
		return words[1] != "("
	case "ALTER":
		for i, w := range words {
			if w == "DROP" && !oneOf(at(words, i+1), "DEFAULT", "NOT", "CONSTRAINT", "IDENTITY", "EXPRESSION") || w == "TRUNCATE" && at(words, i+1) == "PARTITION" {
				return true
			}
			if words[1] == "TABLE" && (w == "DELETE" || w == "UPDATE") && i > 2 && !oneOf(words[i-1], "ON") {
				return true // ClickHouse's mutations
			}
		}
	case "DELETE":
		return (words[1] == "FROM" || len(words) > 1 && words[1] != "=") && !filtered(words)
	case "UPDATE":
		set := false
		for _, w := range words {
			set = set || w == "SET"
		}
		return set && !filtered(words)
	case "FLUSH":
		return false
	}
	return false
}

func at(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// filtered reports whether a statement has a condition that is not always true.
func filtered(words []string) bool {
	for i := len(words) - 1; i > 0; i-- {
		if words[i] != "WHERE" && words[i] != "USING" && words[i] != "JOIN" {
			continue
		}
		rest := words[i+1:]
		switch {
		case words[i] != "WHERE":
			return true
		case len(rest) == 1:
			return !oneOf(rest[0], "TRUE", "1", "'")
		case len(rest) >= 3 && rest[1] == "=" && rest[0] == rest[2] && (len(rest) == 3 || rest[3] == "OR") && rest[0] != "'":
			return false
		}
		for j := range rest {
			if rest[j] == "OR" && (at(rest, j+1) == "TRUE" || at(rest, j+2) == "=" && at(rest, j+1) == at(rest, j+3) && at(rest, j+1) != "'") {
				return false
			}
		}
		return true
	}
	return false
}

// database judges the statements that a client of a database gets.
func (s *shell) database(name string, args []field, in stream) {
	var statements []field
	files := false
	var short, long string
	switch name {
	case "psql", "usql", "pgcli", "duckdb":
		short, long = "cdhpUfvLoPFRT", "command dbname host port username file set variable output"
	case "mysql", "mariadb", "mycli":
		short, long = "eDhPuSo", "execute database host port user socket password init-command"
	case "clickhouse-client", "clickhouse":
		short, long = "qhud", "query host port user password database queries-file multiquery format"
	default:
		short, long = "qQeEcUPSdihnaupf", "execute eval query command cmd host port user password database file url"
	}
	p := parseFlags(args, short, long)
	if p.help {
		return
	}
	for _, o := range p.vals {
		switch {
		case oneOf(o.name, "c", "e", "q", "Q") || listed("command execute eval query cmd init-command execute-query", o.name):
			statements = append(statements, o.value)
		case o.name == "f" || o.name == "file":
			files = true
		}
	}
	switch name {
	case "redis-cli", "valkey-cli":
		s.redis(&p)
		if in.kind == textStream {
			for line := range strings.Lines(in.text) {
				q := flags{}
				for w := range strings.FieldsSeq(line) {
					q.args = append(q.args, field{s: w})
				}
				s.redis(&q)
			}
		}
		return
	case "mongo", "mongosh":
		if in.kind == textStream {
			statements = append(statements, field{s: in.text})
		}
		for _, st := range statements {
			if mongoDrop.MatchString(st.s) {
				s.found |= SQLUnfiltered
			}
			s.code("node", st.s)
		}
		return
	case "sqlite3", "sqlite", "litecli":
		for i, a := range args {
			if a.s == "-cmd" && i+1 < len(args) {
				statements = append(statements, args[i+1])
			}
		}
		if len(p.args) > 1 {
			statements = append(statements, p.args[1:]...)
		}
	case "duckdb", "bq", "clickhouse", "influx", "cockroach":
		statements = append(statements, p.args...)
		if name == "bq" && p.any("rm") {
			s.found |= Teardown
		}
		for i, a := range args {
			if oneOf(a.s, "-execute", "--query", "-q", "-e", "--execute") && i+1 < len(args) {
				statements = append(statements, args[i+1])
			}
		}
	}
	for _, st := range statements {
		s.sql(strings.ReplaceAll(st.s, hole, "x"))
	}
	if !files && len(statements) == 0 || in.kind == textStream {
		switch in.kind {
		case textStream:
			s.sql(in.text)
		case unknownStream:
			s.found |= in.from & RemoteExec
		case fileStream:
			if in.from&RemoteExec != 0 {
				s.found |= RemoteExec
			}
		}
	}
	if file, ok := p.value("f", "file"); ok {
		if st := s.open(file); st.kind == textStream {
			s.sql(st.text)
		} else if file.s == "-" && in.kind == textStream {
			s.sql(in.text)
		}
	}
}

var mongoDrop = lazyregexp.New(`\.(?:dropDatabase|drop|dropCollection|dropUser|dropIndexes)\s*\(|\.(?:remove|deleteMany)\s*\(\s*(?:\{\s*\}\s*)?\)|\bshutdownServer\b|\.updateMany\s*\(\s*\{\s*\}`)

func (s *shell) redis(p *flags) {
	for i, a := range p.args {
		switch strings.ToUpper(a.s) {
		case "FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB":
			s.found |= SQLUnfiltered
		case "DEL", "UNLINK":
			if i == 0 {
				s.found |= SQLUnfiltered
			}
		case "DEBUG", "SCRIPT", "FUNCTION", "CLUSTER":
			if oneOf(strings.ToUpper(p.arg(i+1)), "FLUSH", "SEGFAULT", "RESET", "FLUSHSLOTS") {
				s.found |= SQLUnfiltered
			}
		case "EVAL", "CONFIG":
			continue
		}
		if strings.Contains(strings.ToUpper(a.s), "FLUSHALL") {
			s.found |= SQLUnfiltered
		}
		if i == 0 {
			continue
		}
		break
	}
}

// powershell judges commands of PowerShell and cmd, whose names ignore case.
func (s *shell) powershell(name string, args []field, in stream) {
	operands := 0
	recursive := false
	for _, a := range args {
		lower := strings.ToLower(a.s)
		switch {
		case lower == "-whatif" || lower == "/?":
			return
		case lower == "/s" || strings.HasPrefix(lower, "-rec") || lower == "-r":
			recursive = true
		case !strings.HasPrefix(lower, "-") && !strings.HasPrefix(lower, "/q") && lower != "/f":
			operands++
		}
	}
	piped := in.kind != noStream && in.kind != emptyStream
	text := strings.ToLower(joinFields(args))
	switch name {
	case "remove-item", "ri", "del", "erase", "rd", "rmdir", "deltree":
		if (operands > 0 || piped) && (name != "ri" || len(args) > operands || piped) {
			if s.found |= ForcedDelete; recursive {
				s.found |= RecursiveDelete
			}
		}
	case "clear-content":
		s.found |= EmptyFile
	case "clear-recyclebin":
		s.found |= ForcedDelete
	case "format-volume", "clear-disk", "remove-partition", "initialize-disk", "diskpart":
		s.found |= DeviceWrite
	case "format":
		if len(args) > 0 && len(args[0].s) == 2 && args[0].s[1] == ':' {
			s.found |= DeviceWrite
		}
	case "stop-computer", "restart-computer":
		s.found |= Shutdown
	case "stop-process", "taskkill":
		if strings.Contains(text, "-force") || strings.Contains(text, "/f") {
			s.found |= Kill
		}
	case "stop-service":
		s.found |= Teardown
	case "vssadmin", "wbadmin", "bcdedit":
		if strings.Contains(text, "delete") || strings.Contains(text, "recoveryenabled no") {
			s.found |= ForcedDelete
		}
	case "cipher":
		if strings.Contains(text, "/w") {
			s.found |= ForcedDelete
		}
	case "icacls":
		if strings.Contains(text, "everyone:") && strings.Contains(text, "f") {
			s.found |= PermissionsAll
		}
	case "reg":
		if strings.HasPrefix(text, "delete") {
			s.found |= ForcedDelete
		} else if strings.HasPrefix(text, "add") && strings.Contains(text, `\run`) {
			s.found |= Persistence
		}
	case "schtasks":
		if strings.Contains(text, "/create") {
			s.found |= Persistence
		}
	case "iex", "invoke-expression":
		if len(args) == 0 {
			s.feed(in, "")
			return
		}
		for _, w := range [...]string{"iwr", "irm", "downloadstring", "invoke-webrequest", "invoke-restmethod", "webclient", "curl", "wget"} {
			if strings.Contains(text, w) {
				s.found |= RemoteExec
			}
		}
		s.found |= Opaque
	}
}

var powershellDelete = lazyregexp.New(`(?i)\b(?:remove-item|clear-content|format-volume|clear-disk|stop-computer|restart-computer|\[(?:system\.)?io\.(?:file|directory)\]::delete)\b`)

// powershellCommand judges the arguments of powershell and cmd.
func (s *shell) powershellCommand(args []field, in stream) {
	for i, a := range args {
		lower := strings.ToLower(a.s)
		switch {
		case strings.HasPrefix(lower, "-e") && strings.HasPrefix("-encodedcommand", lower) || lower == "-ec":
			s.found |= DecodedExec
			if i+1 < len(args) {
				if raw, err := base64.StdEncoding.DecodeString(args[i+1].s); err == nil {
					s.runPowershell(utf16LE(raw), in)
				}
			}
			return
		case strings.HasPrefix(lower, "-c") && strings.HasPrefix("-command", lower), lower == "/c", lower == "/k":
			s.runPowershell(joinFields(args[i+1:]), in)
			return
		case strings.HasPrefix(lower, "-f") && strings.HasPrefix("-file", lower):
			if i+1 < len(args) {
				s.runFile(args[i+1], nil, in, "")
			}
			return
		case !strings.HasPrefix(lower, "-") && !strings.HasPrefix(lower, "/"):
			if i == 0 || !oneOf(strings.ToLower(args[i-1].s), "-executionpolicy", "-ep", "-windowstyle", "-w", "-version") {
				s.runPowershell(joinFields(args[i:]), in)
				return
			}
		}
	}
	s.feed(in, "")
}

func (s *shell) runPowershell(text string, in stream) {
	if powershellDelete.MatchString(text) && !strings.Contains(strings.ToLower(text), "-whatif") {
		s.found |= ForcedDelete
	}
	lower := strings.ToLower(text)
	if (strings.Contains(lower, "iex") || strings.Contains(lower, "invoke-expression")) && (strings.Contains(lower, "download") || strings.Contains(lower, "iwr") || strings.Contains(lower, "irm") || strings.Contains(lower, "invoke-webrequest")) {
		s.found |= RemoteExec
	}
	s.run(text, in)
}

func utf16LE(raw []byte) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}
