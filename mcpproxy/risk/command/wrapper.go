package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/code"
	"auditproxy/mcpproxy/risk/command/recipe"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// env judges env, which is a wrapper with an option whose value is split.
func (s rules) env(args []shell.Field, in shell.Stream) {
	for len(args) > 0 {
		a := args[0].Text
		switch {
		case a == "--":
			args = args[1:]
		case a == "-S" || a == "--split-string":
			if len(args) > 1 {
				s.Run(args[1].Code()+" "+shell.Quote(args[2:]), in)
			}
			return
		case strings.HasPrefix(a, "--split-string="):
			s.Run(a[len("--split-string="):]+" "+shell.Quote(args[1:]), in)
			return
		case a == "--help" || a == "--version":
			return
		case len(a) > 1 && a[0] == '-' && !strings.HasPrefix(a, "--"):
			if at := strings.IndexByte(a, 'S'); at > 0 && !strings.ContainsAny(a[:at], "uC") {
				text, rest := a[at+1:], args[1:]
				if text == "" && len(rest) > 0 {
					text, rest = rest[0].Code(), rest[1:]
				}
				s.Run(text+" "+shell.Quote(rest), in)
				return
			}
			args = args[1:]
			if c := a[len(a)-1]; (c == 'u' || c == 'C') && len(args) > 0 {
				args = args[1:]
			}
		case shell.OneOf(a, "--unset", "--chdir", "--argv0"):
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "--"):
			args = args[1:]
		case shell.IsAssignment(a):
			name, value, _ := strings.Cut(args[0].Code(), "=")
			s.Assigned(name, value)
			args = args[1:]
		default:
			s.Command(args, in)
			return
		}
	}
}

// nextOption takes an option from the front of args, "" at the first operand. It
// takes "--" too, which ends the options.
func nextOption(args *[]shell.Field) string {
	if len(*args) == 0 || len((*args)[0].Text) < 2 || (*args)[0].Text[0] != '-' {
		return ""
	}
	a := (*args)[0].Text
	if *args = (*args)[1:]; a == "--" {
		return ""
	}
	return a
}

// bwrap judges bubblewrap, some of whose options take two values.
func (s rules) bwrap(args []shell.Field, in shell.Stream) {
	for {
		a := nextOption(&args)
		if a == "" {
			break
		}
		n := 0
		switch strings.TrimSuffix(a, "-try") {
		case "--help", "--version":
			return
		case "--bind", "--dev-bind", "--ro-bind", "--bind-fd", "--ro-bind-fd", "--setenv", "--symlink", "--file", "--bind-data", "--ro-bind-data", "--chmod", "--overlay-src-fd":
			n = 2
		case "--overlay":
			n = 3
		case "--dev", "--proc", "--tmpfs", "--mqueue", "--dir", "--chdir", "--unsetenv", "--hostname", "--uid", "--gid", "--remount-ro", "--lock-file", "--sync-fd", "--args", "--argv0", "--seccomp", "--add-seccomp-fd",
			"--exec-label", "--file-label", "--block-fd", "--userns-block-fd", "--info-fd", "--json-status-fd", "--userns", "--userns2", "--pidns", "--cap-add", "--cap-drop", "--perms", "--size", "--level-prefix", "--overlay-src", "--tmp-overlay", "--ro-overlay":
			n = 1
		}
		args = args[min(n, len(args)):]
	}
	s.Command(args, in)
}

// manual judges the programs that man is told to show a page with.
func (s rules) manual(args []shell.Field) {
	p := shell.ParseFlags(args, "CRLmMSserEPp", "pager config-file recode locale systems manpath sections extension encoding preprocessor")
	if p.Help {
		return
	}
	for _, o := range p.Values {
		if shell.OneOf(o.Name, "P", "pager", "html") {
			s.RunField(o.Value, shell.Stream{})
		}
	}
	for _, a := range args {
		if browser, ok := strings.CutPrefix(a.Text, "-H"); ok {
			s.MaybeRun(browser)
		}
	}
}

// unknownRunner judges a program that is not known, but is called as those that
// run another one are: with the command behind "--", exec or run.
func (s rules) unknownRunner(name string, args []shell.Field, in shell.Stream) {
	switch name {
	case "man", "whatis", "apropos", "info", "tldr", "help", "whereis", "hash", "ls", "ll", "npm", "yarn", "pnpm", "cargo", "go", "apt-cache", "gem", "logger", "notify-send", "say", "wall", "cheat", "shellcheck", "shfmt", "test", "[", "pytest", "systemd-analyze", "ps", "pgrep":
		if !shell.OneOf(name, "npm", "yarn", "pnpm") {
			return
		}
	}
	if isProse(name) {
		return
	}
	if shell.OneOf(name, "npm", "yarn", "pnpm", "composer") {
		recipe.Scripts(s.Shell, args)
	}
	for _, a := range args {
		code.Called(s.Shell, a.Code())
	}
	if name == "m4" && in.Kind == shell.Text {
		code.Called(s.Shell, in.Text)
	}
	if operands := shell.AfterOptions(args, "", ""); len(operands) > 1 && isCall(operands) {
		s.Command(operands, in)
		return
	}
	for i, a := range args {
		if i+1 == len(args) {
			break
		}
		if next := strings.TrimLeft(args[i+1].Code(), "! "); recipe.IsCommand(next) {
			if shell.OneOf(a.Text, "-c", "-e", "-x", "-z", "exec") {
				s.Run(next, in)
				return
			}
		}
		if !shell.OneOf(a.Text, "--", "exec", "run", "x", "dlx") {
			continue
		}
		rest := args[i+1:]
		if rest[0].Text == "--" && len(rest) > 1 {
			rest = rest[1:]
		}
		if !rest[0].Unknown && trigger.Runs(shell.BaseName(rest[0].Text)) {
			s.Command(rest, in)
			return
		}
	}
}

// isCall reports whether the operands of an unknown program are rather a command
// that it runs than its own: rm with options of rm, a shell with code.
func isCall(operands []shell.Field) bool {
	first := operands[1].Text
	switch name := shell.BaseName(operands[0].Text); name {
	case "rm", "shred":
		return len(first) > 1 && first[0] == '-' && strings.Trim(first, "-rRfvidu") == "" || strings.HasPrefix(first, "/")
	case "sh", "bash", "zsh", "dash", "ksh":
		return len(first) > 1 && first[0] == '-' && strings.HasSuffix(first, "c")
	case "sudo", "git", "dd", "find", "chmod", "chown":
		return len(operands) > 2
	}
	return false
}

// A wrapper is a command that runs another one.
type wrapper struct {
	short, long string // options with a value
	skip        int    // operands in front of the command
	assigns     bool   // assignments in front of the command
	text        bool   // the command is joined and parsed by a shell
	shell       bool   // without a command, a shell reads standard input
	verb        string // the command follows this operand
	texts       string // options whose value a shell runs
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
		"nocorrect", "-", "winpty", "lima", "orb", "fakechroot", "daemonize", "detach", "disown", "ccache", "distcc", "arch", "exec_always", "flatpak-spawn":
		return wrapper{}, true
	case "run0":
		return wrapper{short: "ugD", long: "user group chdir unit slice property nice setenv", shell: true}, true
	case "cgexec":
		return wrapper{short: "g"}, true
	case "setarch":
		return wrapper{skip: 1}, true
	case "lockf":
		return wrapper{short: "t", skip: 1}, true
	case "sem":
		return wrapper{short: "j", long: "id jobs timeout", text: true}, true
	case "pdsh", "clush", "dsh", "pssh", "parallel-ssh":
		return wrapper{short: "wxlfgRhHpotOu", long: "hosts host user par timeout", text: true}, true
	case "toolbox":
		return wrapper{short: "cdr", long: "container distro release", verb: "run"}, true
	case "perf":
		return wrapper{short: "peocCr", skip: 1}, true
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
	case "gosu", "su-exec", "setuidgid", "s6-setuidgid":
		return wrapper{skip: 1}, true
	case "chpst":
		return wrapper{short: "uUbdomnfptcre"}, true
	case "tini", "dumb-init", "catatonit":
		return wrapper{short: "per"}, true
	case "pkexec":
		return wrapper{long: "user"}, true
	case "strace", "ltrace":
		return wrapper{short: "eopsuEaSPOIbX"}, true
	case "taskset", "chrt":
		return wrapper{short: "TPD", skip: 1}, true
	case "numactl", "prlimit", "choom", "firejail", "valgrind", "heaptrack", "proot":
		return wrapper{short: "nCNmipqo", long: "cpunodebind membind interleave physcpubind preferred pid"}, true
	case "proxychains", "proxychains4":
		return wrapper{short: "f"}, true
	case "rlwrap", "cpulimit", "xvfb-run", "caffeinate", "start-stop-daemon":
		return wrapper{short: "aCDfgHilpPqSstwzxuenc", long: "limit pid server-args server-num exec pidfile user chuid name"}, true
	case "systemd-run":
		return wrapper{short: "pEuMH", long: "unit property setenv slice uid gid nice working-directory description machine host service-type on-active on-calendar"}, true
	case "systemd-inhibit":
		return wrapper{long: "what who why mode"}, true
	case "faketime":
		return wrapper{short: "fp", skip: 1}, true
	case "sshpass":
		return wrapper{short: "pfdPv"}, true
	case "watch":
		return wrapper{short: "nq", long: "interval equexit", text: true}, true
	case "plink":
		return wrapper{short: "lPimw", skip: 1, text: true}, true
	case "mosh":
		return wrapper{short: "p", skip: 1, text: true}, true
	case "npx", "bunx", "uvx", "pnpx":
		return wrapper{short: "p", long: "package", texts: "c call"}, true
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
	case "wsl":
		return wrapper{short: "du", long: "distribution user cd"}, true
	case "dotenv", "dotenvx", "distrobox", "distrobox-enter":
		return wrapper{short: "fd", long: "distribution user"}, true
	}
	return wrapper{}, false
}

// wrapped judges the command that a wrapper runs.
func (s rules) wrapped(w wrapper, f []shell.Field, in shell.Stream) shell.Stream {
	args := f[1:]
	switch shell.BaseName(f[0].Text) {
	case "systemd-run":
		recipe.Options(s.Shell, "systemd-run", args)
		for _, a := range args {
			if strings.HasPrefix(a.Text, "--on-") || strings.HasPrefix(a.Text, "--timer-property") {
				s.Add(detector.Persistence)
			}
		}
	case "start-stop-daemon":
		for i, a := range args[:max(len(args)-1, 0)] {
			if shell.OneOf(a.Text, "-x", "--exec", "-a", "--startas") {
				cmd := []shell.Field{args[i+1]}
				for j, b := range args {
					if b.Text == "--" {
						cmd = append(cmd, args[j+1:]...)
						break
					}
				}
				return s.Command(cmd, in)
			}
		}
	case "npx", "bunx", "uvx", "pnpx":
		for _, a := range args {
			if strings.HasPrefix(a.Text, "https:") || strings.HasPrefix(a.Text, "http:") {
				s.Add(detector.RemoteExec)
			} else if !strings.HasPrefix(a.Text, "-") {
				break
			}
		}
	}
	if w.verb != "" {
		at := -1
		for i, a := range args {
			if a.Text == w.verb {
				at = i
				break
			}
		}
		if at < 0 {
			return shell.Anything
		}
		args = args[at+1:]
	}
	reads := w.shell && len(args) == 0
	skip := w.skip
	for len(args) > 0 {
		a := args[0].Text
		switch {
		case a == "--":
			args = args[1:]
			for ; skip > 0 && len(args) > 0; skip-- {
				args = args[1:]
			}
			if w.verb != "" && len(args) > 0 && args[0].Text == "--" {
				args = args[1:]
			}
			return s.inner(w, args, in)
		case len(a) > 2 && strings.HasPrefix(a, "--"):
			name, _, has := strings.Cut(a[2:], "=")
			if name == "help" || name == "version" {
				return shell.Anything
			}
			args = args[1:]
			if !has && w.texts != "" && shell.Listed(w.texts, name) && len(args) > 0 {
				return s.RunField(args[0], in)
			}
			if !has && shell.Listed(w.long, name) && len(args) > 0 {
				args = args[1:]
			}
		case len(a) > 1 && a[0] == '-' && !args[0].Unknown:
			args = args[1:]
			if len(a) == 2 && len(args) > 0 && strings.HasPrefix(w.texts, a[1:]) {
				return s.RunField(args[0], in)
			}
			for j := 1; j < len(a); j++ {
				if w.shell && (a[j] == 's' || a[j] == 'i') {
					reads = true
				}
				if strings.IndexByte(w.short, a[j]) >= 0 {
					if j+1 == len(a) && len(args) > 0 {
						args = args[1:]
					}
					break
				}
			}
		case w.assigns && shell.IsAssignment(a):
			args = args[1:]
		case skip > 0:
			args = args[1:]
			skip--
		default:
			return s.inner(w, args, in)
		}
	}
	if reads {
		s.Feed(in, "")
	}
	return shell.Anything
}

func (s rules) inner(w wrapper, args []shell.Field, in shell.Stream) shell.Stream {
	if w.text {
		return s.Run(shell.Join(args), in)
	}
	return s.Command(args, in)
}

// runXargs judges the command that xargs or parallel runs for each item it reads.
func (s rules) runXargs(f []shell.Field, in shell.Stream) shell.Stream {
	args := f[1:]
	if !s.Spend(8 * len(args)) {
		return shell.Anything
	}
	replace := ""
	for {
		a := nextOption(&args)
		if a == "" {
			break
		}
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a[2:], "=")
			if name == "help" || name == "version" {
				return shell.Anything
			}
			if shell.Abbreviates(name, "replace") {
				if replace = "{}"; has {
					replace = value
				}
			} else if !has && shell.Listed("arg-file delimiter max-args max-chars max-procs max-lines process-slot-var", name) && len(args) > 0 {
				args = args[1:]
			}
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte("IJadELnPsRS", a[j]) >= 0 {
				value := a[j+1:]
				if value == "" && len(args) > 0 {
					value, args = args[0].Text, args[1:]
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
		return in.OrUnknown() // echo
	}
	items := []shell.Field{{Text: shell.Hole, Unknown: true, Split: true, From: in.From}}
	if in.Kind == shell.Text && len(in.Text) <= shell.MaxValue {
		items = items[:0]
		for w := range strings.FieldsSeq(shell.Unquote(in.Text)) {
			items = append(items, shell.Field{Text: w, From: in.From})
		}
		if replace != "" {
			items = []shell.Field{{Text: strings.TrimSpace(in.Text), From: in.From}}
		}
	} else if in.Kind == shell.Empty {
		items = nil // GNU xargs runs once
	}
	cmd := append([]shell.Field(nil), args...)
	if replace == "" {
		return s.Command(append(cmd, items...), shell.Anything)
	}
	for i := range cmd {
		if strings.Contains(cmd[i].Text, replace) && len(items) > 0 {
			cmd[i].Text = strings.ReplaceAll(cmd[i].Text, replace, items[0].Text)
			cmd[i].Unknown = cmd[i].Unknown || items[0].Unknown
			cmd[i].From |= items[0].From
		}
	}
	return s.Command(cmd, shell.Anything)
}

// runParallel judges GNU parallel, which joins its words for a shell.
func (s rules) runParallel(f []shell.Field, in shell.Stream) shell.Stream {
	args := f[1:]
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		a := args[0].Text
		args = args[1:]
		if shell.OneOf(a, "--dry-run", "--dryrun", "--help", "--version") {
			return shell.Anything
		}
		if shell.OneOf(a, "-j", "-a", "-I", "-N", "-n", "-S", "-d", "-C", "--jobs", "--arg-file", "--joblog", "--delay", "--timeout", "--retries", "--colsep", "--sshlogin") && len(args) > 0 {
			args = args[1:]
		}
	}
	at := len(args)
	for i, a := range args {
		if shell.OneOf(a.Text, ":::", "::::", ":::+") {
			at = i
			break
		}
	}
	cmd := args[:at]
	if len(cmd) == 0 {
		for _, a := range args[at:] {
			if !strings.HasPrefix(a.Text, "::") {
				s.RunField(a, shell.Stream{})
			}
		}
		if at == len(args) {
			s.Feed(in, "")
		}
		return shell.Anything
	}
	text := shell.Join(cmd)
	if !strings.Contains(text, "{") {
		text += " {}"
	}
	for _, hole := range [...]string{"{}", "{.}", "{/}", "{//}", "{/.}", "{1}"} {
		if at+1 < len(args) {
			text = strings.ReplaceAll(text, hole, args[at+1].Code())
		} else {
			text = strings.ReplaceAll(text, hole, "${_}")
		}
	}
	return s.Run(text, shell.Anything)
}

// ssh judges the command that another host runs.
func (s rules) ssh(args []shell.Field, in shell.Stream) {
	host := false
	for len(args) > 0 {
		a := args[0].Text
		switch {
		case a == "--":
			args = args[1:]
		case len(a) > 1 && a[0] == '-':
			args = args[1:]
			for j := 1; j < len(a); j++ {
				if strings.IndexByte("BbcDEeFIiJLlmOopQRSWwP", a[j]) < 0 {
					continue
				}
				value := a[j+1:]
				if value == "" && len(args) > 0 {
					value, args = args[0].Text, args[1:]
				}
				if a[j] == 'o' {
					s.sshOption(value)
				}
				break
			}
		case !host:
			host = true
			args = args[1:]
		default:
			s.Run(shell.Join(args), in)
			return
		}
	}
	if host {
		s.Feed(in, "")
	}
}

func (s rules) su(args []shell.Field, in shell.Stream) {
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		switch {
		case shell.OneOf(a, "-c", "--command", "--session-command") || len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c"):
			if i+1 < len(args) {
				s.RunField(args[i+1], in)
			}
			return
		case strings.HasPrefix(a, "--command="):
			s.Run(args[i].Code()[len("--command="):], in)
			return
		case shell.OneOf(a, "-u", "-g", "-s", "--user", "--group", "--shell"):
			if i++; a == "-u" || a == "--user" {
				rest := args[min(i+1, len(args)):]
				if len(rest) > 0 && rest[0].Text == "--" {
					rest = rest[1:]
				}
				s.Command(rest, in)
				return
			}
		case a == "--help" || a == "--version":
			return
		}
	}
	s.Feed(in, "")
}
