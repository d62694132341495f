package risk

import (
	"path"
	"strings"
)

// The private bits of what running a text would be.
const (
	generated Detectors = 1 << (63 - iota) // the start-up code of a known program
	runnable            = RemoteExec | DecodedExec
)

// command judges one command and returns what it prints.
func (s *shell) command(f []field, in stream) stream {
	if len(f) == 0 {
		return stream{kind: emptyStream}
	}
	if s.depth >= maxDepth || !s.spend(commandCost+len(f)) {
		s.found |= Opaque
		return unknown
	}
	s.depth++
	defer func() { s.depth-- }()
	if !s.filling {
		if filled := fill(f); filled != nil {
			s.filling = true
			s.command(filled, in)
			s.filling = false
		}
	}
	w := f[0]
	name := baseName(w.s)
	if w.unknown && strings.Contains(name, hole) || name == "" && w.unknown {
		if !(s.quiet && w.from&More != 0) {
			s.found |= Opaque | w.from&runnable
		}
		if w.split && strings.Trim(w.s, hole) == "" {
			s.maybeCommand(f[1:], in) // the first word may be none
		}
		return unknown
	}
	if name == "{}" { // what find or xargs puts in its place
		s.found |= Opaque
		return unknown
	}
	if w.glob {
		return s.globbed(name, f, in)
	}
	if !w.quoted && len(w.s) > 1 && w.s[0] == '!' {
		s.found |= Opaque // a command of the history
		return unknown
	}
	if fn := s.functions[w.s]; fn != nil {
		out := s.callFunction(fn, f[1:], in)
		s.judgeCommand(name, f, in)
		return out
	}
	if text, ok := s.aliases[w.s]; ok {
		delete(s.aliases, w.s) // an alias is not expanded in itself
		out := s.run(text+" "+requote(f[1:]), in)
		s.aliases[w.s] = text
		if !w.quoted {
			return out
		}
	}
	if len(w.s) > 1 && w.s[0] == '-' && !w.quoted {
		// The options of time, where it is no keyword.
		return s.wrapped(wrapper{short: "fo", long: "format output"}, append([]field{{s: "time"}}, f...), in)
	}
	if strings.Contains(w.s, "/") {
		s.runFile(w, f[1:], in, "")
	}
	return s.judgeCommand(name, f, in)
}

// fill returns the words as they are if what is not known in the middle of one
// is empty, as an unset variable is; nil if that changes nothing.
func fill(f []field) []field {
	var out []field
	for i, w := range f {
		rest := strings.ReplaceAll(w.s, hole, "")
		// In git's branch:ref an empty branch would mean something else.
		if !w.unknown || rest == "" || len(rest) == len(w.s) || rest[0] == ':' || strings.ContainsAny(rest, "/ \n") {
			continue
		}
		if out == nil {
			out = append([]field(nil), f...)
		}
		out[i].s, out[i].unknown, out[i].split = rest, false, false
	}
	return out
}

// maybeCommand judges words that are a command only if an expansion in front of them is empty.
func (s *shell) maybeCommand(f []field, in stream) {
	if len(f) > 0 && !f[0].unknown && isTriggerWord(baseName(f[0].s)) {
		s.command(f, in)
	}
}

// requote returns the fields as words that a shell reads as the same fields.
func requote(f []field) string {
	var b strings.Builder
	for _, w := range f {
		if w.unknown {
			b.WriteString(w.code() + " ")
		} else {
			b.WriteString("'" + strings.ReplaceAll(w.s, "'", `'\''`) + "' ")
		}
	}
	return b.String()
}

func isTriggerWord(name string) bool { return name != "" && scanGate(name)&gateWord != 0 }

// globbed judges a command word with wildcards: what it matches is not known, so
// it is Opaque if it could be a command that matters.
func (s *shell) globbed(name string, f []field, in stream) stream {
	pattern := strings.ReplaceAll(name, hole, "*")
	for _, cmd := range [...]string{
		"rm", "rmdir", "unlink", "shred", "dd", "git", "sh", "bash", "dash", "zsh", "ksh", "busybox", "find", "truncate",
		"kill", "pkill", "killall", "chmod", "chown", "reboot", "shutdown", "halt", "poweroff", "mkfs", "mkfs.ext4", "wipefs",
		"sudo", "env", "xargs", "python3", "python", "perl", "ruby", "node", "curl", "wget", "nc", "cat", "tee", "cp", "mv",
		"psql", "mysql", "sqlite3", "docker", "kubectl", "terraform", "tmux", "crontab", "ssh", "base64", "eval", "aws",
	} {
		if ok, _ := path.Match(pattern, cmd); ok {
			s.found |= Opaque
			g := append([]field{{s: cmd}}, f[1:]...)
			s.judgeCommand(cmd, g, in)
		}
	}
	return unknown
}

// feed runs what an interpreter reads. Language is empty for a shell.
func (s *shell) feed(in stream, language string) {
	switch in.kind {
	case textStream:
		s.found |= in.from & runnable
		if language == "" {
			s.inSubshell(false, func() stream { return s.run(in.text, stream{}) })
			if in.alt != "" {
				s.inSubshell(false, func() stream { return s.run(in.alt, stream{}) })
			}
		} else {
			s.code(language, in.text)
		}
	case fileStream:
		s.found |= in.from & runnable
		s.runPath(in.text, language)
	case unknownStream:
		s.found |= Opaque | in.from&runnable
	}
}

// runFile runs a file that the text wrote or downloaded itself. What is in
// another file is not judged.
func (s *shell) runFile(f field, args []field, in stream, language string) {
	switch {
	case f.reads != nil:
		if f.reads.kind == unknownStream && f.reads.from&(generated|runnable) == generated {
			return
		}
		s.withParams(args, func() { s.feed(*f.reads, language) })
	case oneOf(f.s, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
		s.withParams(args, func() { s.feed(in, language) })
	case strings.HasPrefix(f.s, "/dev/fd/"), strings.HasPrefix(f.s, "/proc/self/fd/"):
		s.found |= Opaque
	case !f.unknown:
		s.withParams(args, func() { s.runPath(f.s, language) })
	}
}

func (s *shell) runPath(name, language string) {
	if file, ok := s.files[path.Clean(name)]; ok && (file.kind == textStream || file.from&runnable != 0) {
		// A script may run itself; its text is taken away so that it ends.
		delete(s.files, path.Clean(name))
		s.feed(file, language)
		s.files[path.Clean(name)] = file
	}
}

func (s *shell) withParams(args []field, f func()) {
	params, has := s.params, s.hasParams
	s.params, s.hasParams = args, true
	f()
	s.params, s.hasParams = params, has
}

// runField runs a word as the text of a shell.
func (s *shell) runField(f field, in stream) stream {
	if f.from&runnable != 0 {
		s.found |= Opaque | f.from&runnable
	}
	if f.s == hole && f.from&generated != 0 && f.from&runnable == 0 {
		return unknown
	}
	return s.run(f.code(), in)
}

// open returns what reading the file gives.
func (s *shell) open(f field) stream {
	switch {
	case f.reads != nil:
		return *f.reads
	case f.s == "/dev/null":
		return stream{kind: emptyStream}
	case f.unknown:
		return stream{kind: fileStream, text: f.s}
	}
	if isCredential(f.s) {
		s.found |= CredentialRead
	}
	if strings.HasPrefix(f.s, "/dev/tcp/") || strings.HasPrefix(f.s, "/dev/udp/") {
		return stream{kind: unknownStream, from: RemoteExec}
	}
	if file, ok := s.files[path.Clean(f.s)]; ok {
		return file
	}
	return stream{kind: fileStream, text: path.Clean(f.s)}
}

// write judges that a command's output goes to a file.
func (s *shell) write(f field, body stream, truncate bool) {
	s.writeTo(f)
	if f.reads != nil || isStandardDevice(f.s) {
		return
	}
	if truncate && body.kind == emptyStream && !strings.HasPrefix(f.s, "/dev/") {
		s.found |= EmptyFile
	}
	if f.unknown {
		return
	}
	if s.files == nil {
		s.files = map[string]stream{}
	}
	name := path.Clean(f.s)
	if !truncate {
		if old, ok := s.files[name]; ok {
			body = old.followedBy(body)
		}
	}
	if body.kind == fileStream {
		body = stream{kind: unknownStream, from: body.from}
	}
	s.files[name] = body
}

// writeTo judges the path that something is written to.
func (s *shell) writeTo(f field) {
	name := f.s
	switch {
	case isDevice(name):
		s.found |= DeviceWrite
	case strings.HasPrefix(name, "/dev/tcp/"), strings.HasPrefix(name, "/dev/udp/"):
		s.found |= Exfiltration
	case name == "/proc/sysrq-trigger":
		s.found |= Shutdown
	case isStartup(name):
		s.found |= Persistence
	}
}

// A wrapper is a command that runs another one.
type wrapper struct {
	short, long string // options with a value
	skip        int    // operands in front of the command
	assigns     bool   // assignments in front of the command
	text        bool   // the command is joined and parsed by a shell
	shell       bool   // without a command, a shell reads standard input
	verb        string // the command follows this operand
}

// wrapperOf returns how a command runs another one.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "sudo", "sudo-rs":
		return wrapper{short: "ugpChDRTUrt", long: "user group host prompt chdir chroot role type other-user close-from command-timeout", assigns: true, shell: true}, true
	case "doas":
		return wrapper{short: "uC", assigns: true}, true
	case "nohup", "builtin", "setsid", "chronic", "ifne", "fakeroot", "eatmydata", "unbuffer", "catchsegv", "ts", "torsocks",
		"torify", "tsocks", "dbus-run-session", "dbus-launch", "setpriv", "busybox", "toybox", "rtk", "linux32", "linux64", "pipx", "noglob",
		"nocorrect", "-", "winpty", "lima", "orb", "fakechroot", "daemonize", "detach", "disown", "ccache", "distcc", "arch", "exec_always":
		return wrapper{}, true
	case "nice":
		return wrapper{short: "n", long: "adjustment"}, true
	case "ionice":
		return wrapper{short: "cnpPu", long: "class classdata"}, true
	case "timeout", "gtimeout":
		return wrapper{short: "ks", long: "kill-after signal", skip: 1}, true
	case "time", "gtime":
		return wrapper{short: "fo", long: "format output"}, true
	case "stdbuf", "gstdbuf":
		return wrapper{short: "ioe", long: "input output error"}, true
	case "exec":
		return wrapper{short: "a"}, true
	case "chroot":
		return wrapper{long: "userspec groups", skip: 1, shell: true}, true
	case "unshare":
		return wrapper{short: "SGRw", long: "map-user map-group propagation setgroups root wd"}, true
	case "nsenter":
		return wrapper{short: "tSGrw", long: "target setuid setgid"}, true
	case "pkexec":
		return wrapper{long: "user"}, true
	case "strace", "ltrace":
		return wrapper{short: "eopsuEaSPOIbX"}, true
	case "taskset", "chrt":
		return wrapper{short: "TPD", skip: 1}, true
	case "numactl", "prlimit", "choom", "firejail", "perf", "valgrind", "heaptrack", "proot":
		return wrapper{short: "nCNmipqo", long: "cpunodebind membind interleave physcpubind preferred pid"}, true
	case "proxychains", "proxychains4":
		return wrapper{short: "f"}, true
	case "rlwrap", "cpulimit", "xvfb-run", "caffeinate", "start-stop-daemon":
		return wrapper{short: "aCDfgHilpPqSstwzxuenc", long: "limit pid server-args server-num exec pidfile user chuid name"}, true
	case "systemd-run":
		return wrapper{short: "pEuMHt", long: "unit property setenv slice uid gid nice working-directory description machine host service-type on-active on-calendar"}, true
	case "systemd-inhibit":
		return wrapper{long: "what who why mode"}, true
	case "faketime":
		return wrapper{short: "fp", skip: 1}, true
	case "sshpass":
		return wrapper{short: "pfdPv"}, true
	case "watch":
		return wrapper{short: "nq", long: "interval equexit", text: true}, true
	case "mosh":
		return wrapper{short: "p", skip: 1, text: true}, true
	case "npx", "bunx", "uvx", "pnpx":
		return wrapper{short: "p", long: "package"}, true
	case "direnv":
		return wrapper{verb: "exec", skip: 1}, true
	case "poetry", "pipenv", "uv", "hatch", "rye", "pdm", "doppler", "op", "infisical":
		return wrapper{verb: "run", long: "env-file with python config project"}, true
	case "bundle", "mise", "rbenv", "pyenv", "nodenv", "devbox":
		return wrapper{verb: "exec"}, true
	case "aws-vault", "chamber":
		return wrapper{verb: "exec", skip: 1}, true
	case "adb":
		return wrapper{short: "s", verb: "shell", text: true}, true
	case "lxc", "incus", "multipass":
		return wrapper{verb: "exec", skip: 1}, true
	case "wsl", "dotenv", "dotenvx", "toolbox", "distrobox", "distrobox-enter":
		return wrapper{short: "fd", long: "distribution user"}, true
	}
	return wrapper{}, false
}

// wrapped judges the command that a wrapper runs.
func (s *shell) wrapped(w wrapper, f []field, in stream) stream {
	args := f[1:]
	if w.verb != "" {
		at := -1
		for i, a := range args {
			if a.s == w.verb {
				at = i
				break
			}
		}
		if at < 0 {
			return unknown
		}
		args = args[at+1:]
	}
	shell := w.shell && len(args) == 0
	skip := w.skip
	for len(args) > 0 {
		a := args[0].s
		switch {
		case a == "--":
			args = args[1:]
			for ; skip > 0 && len(args) > 0; skip-- {
				args = args[1:]
			}
			if w.verb != "" && len(args) > 0 && args[0].s == "--" {
				args = args[1:]
			}
			return s.inner(w, args, in)
		case len(a) > 2 && strings.HasPrefix(a, "--"):
			name, _, has := strings.Cut(a[2:], "=")
			if name == "help" || name == "version" {
				return unknown
			}
			args = args[1:]
			if !has && listed(w.long, name) && len(args) > 0 {
				args = args[1:]
			}
		case len(a) > 1 && a[0] == '-' && !args[0].unknown:
			args = args[1:]
			for j := 1; j < len(a); j++ {
				if w.shell && (a[j] == 's' || a[j] == 'i') {
					shell = true
				}
				if strings.IndexByte(w.short, a[j]) >= 0 {
					if j+1 == len(a) && len(args) > 0 {
						args = args[1:]
					}
					break
				}
			}
		case w.assigns && isAssignment(a):
			args = args[1:]
		case skip > 0:
			args = args[1:]
			skip--
		default:
			return s.inner(w, args, in)
		}
	}
	if shell {
		s.feed(in, "")
	}
	return unknown
}

func (s *shell) inner(w wrapper, args []field, in stream) stream {
	if w.text {
		return s.run(joinFields(args), in)
	}
	return s.command(args, in)
}

func isAssignment(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && gateClass[c] != classWord {
			return false
		}
	}
	return true
}

// runShell judges sh, bash and others.
func (s *shell) runShell(f []field, in stream) stream {
	args := f[1:]
	code, stdin, noexec, interactive := false, false, false, false
	for len(args) > 0 {
		a := args[0]
		if len(a.s) < 2 || a.s[0] != '-' && a.s[0] != '+' || a.reads != nil {
			break
		}
		args = args[1:]
		if a.s == "--" {
			break
		}
		if strings.HasPrefix(a.s, "--") {
			switch a.s {
			case "--help", "--version":
				return unknown
			case "--rcfile", "--init-file", "--init-command", "--command":
				if len(args) > 0 {
					if strings.HasSuffix(a.s, "command") {
						s.runField(args[0], in)
					} else {
						s.runFile(args[0], nil, in, "")
					}
					args = args[1:]
				}
			default:
				if text, ok := strings.CutPrefix(a.s, "--command="); ok {
					a.s = text
					s.runField(a, in)
				}
			}
			continue
		}
		for j := 1; j < len(a.s); j++ {
			switch a.s[j] {
			case 'c':
				code = code || a.s[0] == '-'
			case 's':
				stdin = true
			case 'n':
				noexec = noexec || a.s[0] == '-'
			case 'i':
				interactive = true
			case 'o', 'O':
				if len(args) > 0 {
					noexec = noexec || a.s[0] == '-' && args[0].s == "noexec"
					args = args[1:]
				}
			}
		}
	}
	if noexec && !interactive {
		return unknown
	}
	if len(args) > 0 && args[0].s == "-" {
		if args = args[1:]; !code {
			stdin = stdin || len(args) == 0
		}
	}
	switch {
	case code && len(args) > 0:
		var out stream
		params, zero := args[1:], s.zero
		if len(params) > 0 {
			s.zero, params = params[0].s, params[1:]
		}
		defer func() { s.zero = zero }()
		s.inSubshell(false, func() stream {
			s.withParams(params, func() { out = s.runField(args[0], in) })
			return out
		})
		return out
	case code:
		return unknown
	case stdin || len(args) == 0:
		s.withParams(args, func() { s.feed(in, "") })
	default:
		s.inSubshell(false, func() stream {
			s.runFile(args[0], args[1:], in, "")
			return unknown
		})
	}
	return unknown
}

// runXargs judges the command that xargs or parallel runs for each item it reads.
func (s *shell) runXargs(f []field, in stream) stream {
	args := f[1:]
	if !s.spend(8 * len(args)) {
		return unknown
	}
	replace := ""
	for len(args) > 0 {
		a := args[0].s
		if len(a) < 2 || a[0] != '-' {
			break
		}
		args = args[1:]
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a[2:], "=")
			if name == "help" || name == "version" {
				return unknown
			}
			if abbreviates(name, "replace") {
				if replace = "{}"; has {
					replace = value
				}
			} else if !has && listed("arg-file delimiter max-args max-chars max-procs max-lines process-slot-var", name) && len(args) > 0 {
				args = args[1:]
			}
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte("IJadELnPsRS", a[j]) >= 0 {
				value := a[j+1:]
				if value == "" && len(args) > 0 {
					value, args = args[0].s, args[1:]
				}
				if a[j] == 'I' || a[j] == 'J' {
					replace = value
				}
				break
			}
			if a[j] == 'i' {
				if replace = a[j+1:]; replace == "" {
					replace = "{}"
				}
				break
			}
		}
	}
	if len(args) == 0 {
		return in.orUnknown() // echo
	}
	items := []field{{s: hole, unknown: true, split: true, from: in.from}}
	if in.kind == textStream && len(in.text) <= maxValue {
		items = items[:0]
		for w := range strings.FieldsSeq(unquote(in.text)) {
			items = append(items, field{s: w, from: in.from})
		}
		if replace != "" {
			items = []field{{s: strings.TrimSpace(in.text), from: in.from}}
		}
	} else if in.kind == emptyStream {
		items = nil // GNU xargs runs once
	}
	cmd := append([]field(nil), args...)
	if replace == "" {
		return s.command(append(cmd, items...), unknown)
	}
	for i := range cmd {
		if strings.Contains(cmd[i].s, replace) && len(items) > 0 {
			cmd[i].s = strings.ReplaceAll(cmd[i].s, replace, items[0].s)
			cmd[i].unknown = cmd[i].unknown || items[0].unknown
			cmd[i].from |= items[0].from
		}
	}
	return s.command(cmd, unknown)
}

// runParallel judges GNU parallel, which joins its words for a shell.
func (s *shell) runParallel(f []field, in stream) stream {
	args := f[1:]
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' {
		a := args[0].s
		args = args[1:]
		if oneOf(a, "--dry-run", "--dryrun", "--help", "--version") {
			return unknown
		}
		if oneOf(a, "-j", "-a", "-I", "-N", "-n", "-S", "-d", "-C", "--jobs", "--arg-file", "--joblog", "--delay", "--timeout", "--retries", "--colsep", "--sshlogin") && len(args) > 0 {
			args = args[1:]
		}
	}
	at := len(args)
	for i, a := range args {
		if oneOf(a.s, ":::", "::::", ":::+") {
			at = i
			break
		}
	}
	cmd := args[:at]
	if len(cmd) == 0 {
		for _, a := range args[at:] {
			if !strings.HasPrefix(a.s, "::") {
				s.runField(a, stream{})
			}
		}
		if at == len(args) {
			s.feed(in, "")
		}
		return unknown
	}
	text := joinFields(cmd)
	if !strings.Contains(text, "{") {
		text += " {}"
	}
	for _, hole := range [...]string{"{}", "{.}", "{/}", "{//}", "{/.}", "{1}"} {
		if at+1 < len(args) {
			text = strings.ReplaceAll(text, hole, args[at+1].code())
		} else {
			text = strings.ReplaceAll(text, hole, "${_}")
		}
	}
	return s.run(text, unknown)
}
