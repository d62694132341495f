// Package command says what commands do: what a text would delete, send, stop or
// change for good if a shell ran it. It runs nothing and performs no I/O.
//
// Package trigger first looks whether a rule could see anything in the text at
// all. If so, package shell follows the text as a shell would, and calls back
// with the words of each command. The rules here judge a command by the name of
// its program and its parsed options, not by patterns in its text: "rm" in a
// commit message is no command, and "sudo env -S 'r\\m x'" is one.
//
// A program that runs another (a wrapper, find -exec, ssh, an interpreter) has a
// rule that gives the inner command, text or code back: to the shell, to package
// code for other languages, to package infra for containers and clouds, to package
// recipe for what options, settings and build files name, to package terminal for
// multiplexers. Package guard judges commands that weaken the protection of a host,
// package own those that are about this program. What is known of a program's output goes through pipes and
// substitutions.
//
// A rule errs towards what the program does by default: it knows the options
// that make a call harmless (--dry-run, --help, -l), and counts the rest.
//
// To add a program, add its name to the switch of tool or of the function for
// programs of its kind, its rule, its name or a word of its arguments to
// trigger/words.go, and cases to testdata/commands.txt.
//
// The files, from the top: command, wrapper, interpreter, files, filter, system,
// network, git, rules.
package command

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"auditproxy/mcpproxy/risk/command/code"
	"auditproxy/mcpproxy/risk/command/guard"
	"auditproxy/mcpproxy/risk/command/infra"
	"auditproxy/mcpproxy/risk/command/own"
	"auditproxy/mcpproxy/risk/command/recipe"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/terminal"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// A Detector detects what commands do. It is immutable; Detect may be called
// concurrently.
type Detector struct {
	patterns []*regexp.Regexp
	own      []string
	shells   sync.Pool // of *shell.Shell
}

// New returns a Detector. A text that one of the operator's patterns matches is
// CommandPattern. The paths own, absolute or below ~, are this program's.
func New(patterns []*regexp.Regexp, own ...string) *Detector {
	return &Detector{patterns: patterns, own: own}
}

// Matters reports whether a text has anything that a rule could see. For any
// other, Detect returns what Match does.
func Matters(text string) bool { return trigger.Scan(text) != 0 }

// Budget is what the texts of one call may cost together: 5 ms or less. A text
// that costs more is Opaque.
const Budget = shell.Budget

// Detect returns what a text does if a shell runs it, and what it leaves of a
// budget. What it cannot read is Opaque if it has anything that matters.
func (d *Detector) Detect(text string, budget int) (found detector.Set, left int) {
	found = d.Match(text)
	if !Matters(text) {
		return found, budget
	}
	if len(text) > shell.MaxText || budget <= 0 {
		return found | detector.Opaque, budget
	}
	sh, _ := d.shells.Get().(*shell.Shell)
	if sh == nil {
		sh = shell.New(programs{}, d.own...)
	}
	// The text is hostile and the parser is large: a panic in it must not end the
	// proxy. The shell that panicked is not used again.
	defer func() {
		if recover() != nil {
			found, left = found|detector.Opaque, 0
		}
	}()
	does, left := sh.Judge(text, budget)
	d.shells.Put(sh)
	return found | does, left
}

// Match returns CommandPattern if one of the operator's patterns matches a text.
func (d *Detector) Match(text string) detector.Set {
	for _, p := range d.patterns {
		if p.MatchString(text) {
			return detector.CommandPattern
		}
	}
	return 0
}

// programs are the rules of programs, as a shell calls them.
type programs struct{}

func (programs) Call(sh *shell.Shell, name string, words []shell.Field, in shell.Stream) shell.Stream {
	return sh.AsRoot(guard.IsRoot(name, words[1:], sh.Root), func() shell.Stream { return rules{sh}.call(name, words, in) })
}

func (programs) Code(sh *shell.Shell, language, text string) { code.Judge(sh, language, text) }

func (programs) Line(sh *shell.Shell, line string) bool {
	if !code.IsSQL(line) {
		if code.Leaves(line) {
			code.SQL(sh, line)
		}
		code.PowerShellLine(sh, line)
		return false
	}
	code.SQL(sh, line)
	return true
}

// call applies the rule of a program and returns what it prints.
func (s rules) call(name string, f []shell.Field, in shell.Stream) shell.Stream {
	name = unversioned(name)
	if lower := strings.ToLower(strings.TrimSuffix(name, ".EXE")); name != lower && name == strings.ToUpper(name) && shell.In(lower, "rm shred find xargs git dd chmod sudo") {
		name = lower // on disks of macOS and Windows these are the same
	}
	if strings.HasPrefix(f[0].Text, "/etc/init.d/") {
		name, f = "service", append([]shell.Field{{Text: "service"}}, f...)
	}
	guard.Judge(s.Shell, name, f[1:], in)
	infra.GivesAccess(s.Shell, name, f[1:], in)
	infra.Indirect(s.Shell, name, f[1:])
	if w, ok := wrapperOf(name); ok {
		if w.verb != "" && !slices.ContainsFunc(f[1:], func(a shell.Field) bool { return a.Text == w.verb }) {
			s.tool(name, f[1:], in) // it does something else
		}
		out := s.wrapped(w, f, in)
		if w.verb != "" && isGenerator(name, f[1:]) {
			out.From |= shell.Generated
		}
		return out
	}
	if cmd := typedIntoEditor(f); cmd != nil {
		return s.Command(cmd, in)
	}
	args := f[1:]
	out := shell.Stream{Kind: shell.Unknown, From: in.From}
	own.Judge(s.Shell, name, args)
	switch name {
	case "cat", "bat", "batcat", "head", "tail", "less", "more", "tac", "nl", "strings", "od", "hexdump", "xxd", "grep", "egrep", "fgrep",
		"rg", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "cut", "sort", "uniq", "tr", "rev", "base64", "base32", "basenc", "openssl", "gpg", "gpg2",
		"gunzip", "zcat", "gzip", "xzcat", "xz", "bzcat", "bzip2", "zstdcat", "zstd", "lz4", "uudecode", "iconv", "envsubst", "jq", "yq", "fold",
		"paste", "column", "pr", "expand", "unexpand", "dos2unix", "ccrypt", "age", "b64decode", "ag", "ack":
		return s.filter(name, args, in)
	case "tee", "sponge":
		p := shell.ParseFlags(args, "", "output-error")
		truncate := !p.Has("a", "append")
		for _, a := range p.Args {
			if a.Reads == nil || !strings.HasPrefix(a.Text, "/dev/fd/") {
				s.Write(a, in, truncate)
			}
		}
		return in
	case "xargs", "gxargs":
		return s.runXargs(f, in)
	case "parallel", "rush":
		return s.runParallel(f, in)
	case "find", "gfind", "fd", "fdfind":
		out.From |= s.find(args)
	case "hyperfine", "mispipe", "concurrently":
		for _, a := range args {
			if !strings.HasPrefix(a.Text, "-") {
				s.RunField(a, shell.Stream{})
			}
		}
	case "curl", "wget", "wget2", "iwr", "irm", "http", "https", "xh", "httpie", "aria2c", "lynx", "w3m", "fetch", "lwp-request", "Invoke-WebRequest", "Invoke-RestMethod":
		s.tool(name, args, in)
		s.sendsLocal(name, args)
		out.From |= detector.RemoteExec
		out.From &^= shell.Local
	case "pgrep", "pidof":
		for _, a := range args {
			if own.Named(a.Text) {
				out.From |= detector.AuditTampering // what they print are its processes
			}
			if guard.IsProtector(a.Text) {
				out.From |= detector.ProtectionOff
			}
		}
	default:
		if s.tool(name, args, in); isGenerator(name, args) {
			out.From |= shell.Generated
		}
		if in.Kind == shell.File || name == "env" && len(args) == 0 || shell.OneOf(name, "tar", "zip", "printenv", "Get-Content", "gc", "pg_dump", "pg_dumpall", "mysqldump", "mongodump") {
			out.From |= shell.Local
		}
	}
	return out
}

// unversioned returns the name of an interpreter without the version that
// distributions put behind it, as in python3.12.
func unversioned(name string) string {
	if at := strings.IndexByte(name, '.'); at < 0 || strings.Trim(name[at:], ".0123456789") != "" {
		return name
	}
	switch base := strings.TrimRight(name, ".0123456789"); base {
	case "python", "pypy", "pip", "ruby", "gem", "perl", "php", "lua", "tclsh":
		return base
	}
	return name
}

// typedIntoEditor returns the words of the command that a line of vi runs, such as
// :!ls, :r !ls or :%!sort; nil for any other command.
func typedIntoEditor(f []shell.Field) []shell.Field {
	if f[0].Text == "" || f[0].Text[0] != ':' {
		return nil
	}
	for i, w := range f[:min(len(f), 2)] {
		before, command, ok := strings.Cut(w.Text, "!")
		if i == 0 {
			before = strings.TrimLeft(before[1:], "%.,$0123456789'<>")
		}
		switch {
		case !ok || !shell.OneOf(before, "", "r", "read", "w", "write"):
		case command == "":
			return f[i+1:]
		default:
			cmd := append([]shell.Field(nil), f[i:]...)
			cmd[0].Text = command
			return cmd
		}
	}
	return nil
}

// isGenerator reports whether a command is of those that print start-up code for
// a shell. Running it is as usual as running the program itself.
func isGenerator(name string, args []shell.Field) bool {
	has := func(words string) bool {
		return slices.ContainsFunc(args, func(a shell.Field) bool { return shell.In(a.Text, words) })
	}
	return shell.In(name, "ssh-agent dircolors direnv pyenv rbenv nodenv starship zoxide fnm mise opam thefuck keychain lesspipe register-python-argcomplete resize tput") ||
		shell.In(name, "brew conda mamba micromamba minikube docker-machine atuin mcfly fzf luarocks kubectl helm gh rustup poetry pip npm deno op tmux aws_completer") &&
			has("shellenv shell.bash shell.zsh completion completions docker-env env init path --bash --zsh") ||
		// Not known by name, but called as those that are.
		len(args) > 0 && shell.In(args[0].Text, "completion completions shellenv init hook") && has("script shellenv bash zsh fish sh pwsh powershell")
}

// tool applies the rules of programs whose output does not matter.
func (s rules) tool(name string, args []shell.Field, in shell.Stream) {
	recipe.Options(s.Shell, name, args)
	if terminal.Judge(s.Shell, name, args, in) && name != "zellij" && name != "abduco" {
		return
	}
	switch name {
	case "env", "genv":
		s.env(args, in)
	case "ssh", "autossh", "dbclient":
		s.ssh(args, in)
	case "su", "runuser":
		s.su(args, in)
	case "bwrap":
		s.bwrap(args, in)
	case "man":
		s.manual(args)
	case "cmake":
		if len(args) > 2 && args[0].Text == "-E" {
			switch args[1].Text {
			case "remove_directory":
				s.Add(detector.RecursiveDelete | detector.ForcedDelete)
			case "remove":
				s.Add(detector.ForcedDelete)
			case "rm", "env", "time":
				s.Command(args[1:], in)
			}
		}
	case "wrangler", "turso", "supabase", "pscale", "neon":
		for _, a := range args {
			if code.IsSQL(a.Text) {
				code.SQL(s.Shell, a.Text)
			}
		}
		infra.TearsDown(s.Shell, name, args)
	case "docker", "podman", "nerdctl", "crictl", "docker-compose", "podman-compose":
		infra.Docker(s.Shell, name, args, in)
	case "k3s", "k0s", "microk8s":
		if len(args) > 0 && args[0].Text == "kubectl" {
			infra.Kubectl(s.Shell, args[1:], in)
		} else {
			infra.TearsDown(s.Shell, name, args)
		}
	case "uv":
		if len(args) > 0 && args[0].Text == "pip" {
			s.Command(args, in)
		}
	case "kubectl", "oc", "k", "kubecolor":
		infra.Kubectl(s.Shell, args, in)
	case "script", "flock", "vagrant", "nix-shell", "nix", "entr", "fly", "flyctl", "gcloud", "expect", "sg", "newgrp", "capsh", "machinectl", "at", "batch", "crontab":
		s.runner(name, args, in)
	case "python", "python2", "python3", "pypy", "pypy3", "ipython", "ipython3", "perl", "ruby", "irb", "jruby", "node", "nodejs", "deno", "bun", "php", "lua",
		"luajit", "osascript", "Rscript", "pwsh", "powershell", "tclsh", "groovy", "julia", "elixir", "cmd",
		"tsx", "ts-node", "R", "raku", "swift", "scala", "scala-cli", "kotlin", "kotlinc", "iex", "ghc", "runghc", "ecl", "clojure", "clj", "bb", "racket", "guile", "sbcl", "crystal", "jshell", "go":
		s.interpreter(name, args, in)
	case "vim", "vi", "nvim", "ex", "view", "ed", "emacs", "gvim", "emacsclient":
		s.editor(args, in)
	case "make", "gmake", "ninja", "just", "rake", "rails", "bin/rails":
		recipe.Build(s.Shell, name, args, in)
	case "mix":
		if len(args) > 1 && args[0].Text == "run" {
			s.interpreter("elixir", args[1:], in)
		} else if len(args) > 1 && args[0].Text == "eval" {
			s.interpreter("elixir", args, in)
		}
		infra.TearsDown(s.Shell, name, args)
	case "git", "hub":
		s.git(args)
	case "hg", "svn", "jj", "bfg", "fossil", "p4":
		s.otherVCS(name, args)
	case "gh", "glab": // infra.GivesAccess
	case "psql", "mysql", "mariadb", "sqlite3", "sqlite", "duckdb", "clickhouse-client", "clickhouse", "sqlcmd", "cqlsh", "usql", "pgcli", "mycli", "litecli",
		"cockroach", "snowsql", "isql", "sqlplus", "beeline", "hive", "presto", "trino", "bq", "impala-shell", "mongo", "mongosh", "redis-cli", "valkey-cli", "keydb-cli", "influx", "spark-sql", "cypher-shell":
		code.Database(s.Shell, name, args, in)
	case "dropdb", "dropuser", "pg_dropcluster", "mysqladmin", "pg_resetwal", "dropcluster":
		p := shell.ParseFlags(args, "hpUuP", "host port username user password maintenance-db")
		if !p.Help && !p.Dry("n", "dry-run") && len(p.Args) > 0 && (name != "mysqladmin" || p.Any("drop", "shutdown", "flush-hosts", "kill")) {
			s.Add(detector.SQLUnfiltered)
		}
	case "manage.py":
		s.manage(args)
	case "pg_restore", "mongorestore":
		if p := shell.ParseFlags(args, "dhpUjtTnN", "dbname host port username db uri"); !p.Help && (p.Has("c", "clean") && name == "pg_restore" && p.Has("d", "dbname") || p.Has("drop")) {
			s.Add(detector.SQLUnfiltered)
		}
	case "DROP", "drop", "Drop", "DELETE", "TRUNCATE", "UPDATE", "ALTER", "GRANT", "delete", "update", "alter", "grant":
		code.Typed(s.Shell, name, shell.Join(args))
	default:
		if verb, ok := strings.CutPrefix(name, "git-"); ok {
			s.gitVerb(verb, args, false)
			return
		}
		if s.deletes(name, args, in) || s.system(name, args, in) || s.transfers(name, args, in) || infra.Windows(s.Shell, name, args) || code.Statement(s.Shell, name, args) ||
			infra.TearsDown(s.Shell, name, args) {
			return
		}
		s.unknownRunner(name, args, in)
	}
}
