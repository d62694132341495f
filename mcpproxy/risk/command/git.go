package command

import (
	"path"
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// git judges git: what rewrites or deletes refs, and what discards changes that
// were never committed.
func (s rules) git(args []shell.Field) {
	clean := false // clean.requireForce is off
	var settings []shell.Field
	for len(args) > 0 {
		a := args[0].Text
		if len(a) < 2 || a[0] != '-' {
			break
		}
		args = args[1:]
		switch a {
		case "--help", "--version", "-h", "-v":
			return
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--exec-path":
			if a == "--exec-path" || len(args) == 0 {
				continue
			}
			value := args[0]
			args = args[1:]
			if a == "-c" {
				clean, settings = s.gitConfig(value) || clean, append(settings, value)
			}
		default:
			if strings.HasPrefix(a, "-c") {
				clean, settings = s.gitConfig(shell.Field{Text: a[2:]}) || clean, append(settings, shell.Field{Text: a[2:]})
			}
		}
	}
	if len(args) == 0 {
		return
	}
	if args[0].Unknown {
		s.Add(detector.Opaque)
		return
	}
	for i := len(settings) - 1; i >= 0; i-- { // the last one counts
		if text, ok := strings.CutPrefix(settings[i].Code(), "alias."+args[0].Text+"="); ok {
			s.MaybeRun(strings.TrimPrefix("git "+text, "git !") + " " + shell.Quote(args[1:]))
			break
		}
	}
	s.gitVerb(args[0].Text, args[1:], clean)
}

// gitConfig judges a setting, which may be a command. It reports whether clean needs no force.
func (s rules) gitConfig(f shell.Field) bool {
	key, value, _ := strings.Cut(f.Code(), "=")
	key = strings.ToLower(key)
	s.gitSetting(key, value)
	return key == "clean.requireforce" && shell.OneOf(strings.ToLower(value), "false", "0", "no", "off")
}

func (s rules) gitSetting(key, value string) {
	switch {
	case strings.HasPrefix(value, "!"):
		s.MaybeRun(value[1:])
	case strings.HasPrefix(key, "alias."):
		s.MaybeRun("git " + value)
	case strings.HasPrefix(key, "filter."), strings.HasSuffix(key, "pager"), strings.HasSuffix(key, "editor"), strings.HasSuffix(key, "command"), strings.HasSuffix(key, ".cmd"),
		strings.HasSuffix(key, "askpass"), strings.HasSuffix(key, "textconv"), strings.HasSuffix(key, "gitproxy"), strings.HasSuffix(key, ".program"), strings.HasSuffix(key, "packobjectshook"), strings.HasSuffix(key, "fsmonitor"), strings.HasSuffix(key, "external"), strings.HasPrefix(key, "pager."):
		if s.MaybeRun(value); strings.HasSuffix(key, "fsmonitor") && strings.Contains(value, "/") {
			s.Add(detector.Persistence)
		}
	case key == "core.hookspath", key == "init.templatedir":
		s.Add(detector.Persistence)
	}
}

// gitClone follows what is fetched, so that it is known when it runs.
func (s rules) gitClone(args []shell.Field) {
	p := shell.ParseFlags(args, "bocju", "branch origin config jobs depth reference template upload-pack separate-git-dir shallow-since shallow-exclude filter")
	from := p.Arg(0)
	if !strings.Contains(from, ":") || p.Help {
		return // of this host
	}
	dir := p.Arg(1)
	if dir == "" {
		dir = strings.TrimSuffix(path.Base(from[strings.LastIndexByte(from, ':')+1:]), ".git")
	}
	s.Unpack(dir, detector.RemoteExec)
}

// gitRuns judges the programs that an option or an address of git names.
func (s rules) gitRuns(verb string, args []shell.Field) {
	for i, a := range args {
		name, value, has := strings.Cut(a.Code(), "=")
		if !has && i+1 < len(args) {
			value = args[i+1].Code()
		}
		switch {
		case !strings.HasPrefix(name, "-"):
			value = name // of an operand, which may be an address
		case shell.OneOf(name, "--upload-pack", "--receive-pack"), name == "--exec" && shell.OneOf(verb, "push", "archive"), name == "-u" && verb == "clone":
			s.MaybeRun(value)
		case shell.OneOf(name, "-c", "--config") && verb == "clone":
			if !has || name == "-c" {
				s.gitConfig(shell.Field{Text: value})
			} else {
				s.gitConfig(shell.Field{Text: a.Text[len("--config="):]})
			}
		case verb == "grep" && (strings.HasPrefix(name, "-O") && len(name) > 2 || name == "--open-files-in-pager" && has):
			s.MaybeRun(strings.TrimPrefix(strings.TrimPrefix(a.Code(), "-O"), "--open-files-in-pager=") + " ${_}") // git adds files
		}
		if command, ok := strings.CutPrefix(value, "ext::"); ok {
			s.MaybeRun(command)
		}
	}
}

// gitVerb judges a verb of git. With clean, git clean needs no --force.
func (s rules) gitVerb(verb string, args []shell.Field, clean bool) {
	s.gitRuns(verb, args)
	if verb == "grep" || verb == "log" {
		return
	}
	short, long := gitValues(verb)
	p := shell.ParseFlags(args, short, long)
	for _, n := range p.Names {
		if n == "help" || n == "h" {
			return
		}
	}
	if shell.OneOf(verb, "push", "clean", "rm", "reflog", "prune", "add", "fetch", "mv") && p.Dry("n", "dry-run") {
		return
	}
	if losesWorktree(verb, &p, clean) {
		s.Add(detector.GitWorktree)
	}
	if losesHistory(verb, &p) {
		s.Add(detector.GitHistory)
	}
	s.gitCommands(verb, args, &p)
	switch verb {
	case "clone":
		s.gitClone(args)
	case "push":
		s.gitPush(&p)
	case "checkout":
		s.gitCheckout(args, &p)
	case "rm":
		if !p.Has("cached") && (len(p.Args) > 0 || p.Has("pathspec-from-file")) {
			if s.Add(detector.ForcedDelete); p.Has("r") {
				s.Add(detector.RecursiveDelete)
			}
		}
	case "annex":
		if p.Arg(0) == "drop" && p.Has("force") {
			s.Add(detector.ForcedDelete)
		}
	case "config":
		set := p.Args
		if len(set) > 1 && set[0].Text == "set" {
			set = set[1:]
		}
		if len(set) > 1 {
			s.gitSetting(strings.ToLower(set[0].Text), set[1].Code())
		}
	case "credential":
		if p.Arg(0) == "fill" {
			s.Add(detector.CredentialRead)
		}
	}
}

// gitValues returns the options of a verb of git that have values.
func gitValues(verb string) (short, long string) {
	switch verb {
	case "push":
		return "o", "repo push-option receive-pack exec recurse-submodules"
	case "clean":
		return "e", "exclude"
	case "checkout", "switch":
		return "bBcC", "conflict orphan create force-create"
	case "restore":
		return "s", "source conflict pathspec-from-file"
	case "commit", "tag":
		return "mFCctuS", "message file reuse-message reedit-message author date template fixup squash"
	case "gc", "reflog":
		return "", "expire expire-unreachable"
	case "difftool", "mergetool":
		return "xtb", "extcmd tool"
	case "rebase":
		return "xsXC", "exec onto strategy strategy-option"
	case "branch":
		return "u", "set-upstream-to sort format contains merged no-merged points-at"
	}
	return "m", "message"
}

// losesWorktree reports whether a verb of git discards changes that were not committed.
func losesWorktree(verb string, p *shell.Flags, clean bool) bool {
	switch verb {
	case "reset":
		return p.Has("hard") || p.Has("merge") && !p.Has("mixed")
	case "clean":
		return p.Has("f", "force") || clean && !p.Has("i", "interactive")
	case "restore":
		return (!p.Has("S", "staged") || p.Has("W", "worktree")) && (len(p.Args) > 0 || p.Has("pathspec-from-file")) && !p.Has("p", "patch")
	case "switch":
		return p.Has("discard-changes", "f", "force") && !p.Has("p")
	case "checkout-index":
		return p.Has("f", "force")
	case "read-tree":
		return p.Has("reset") && p.Has("u")
	case "worktree":
		return p.Arg(0) == "remove" && p.Has("f", "force")
	case "submodule":
		return p.Arg(0) == "deinit" && p.Has("f", "force")
	}
	return false
}

// losesHistory reports whether a verb of git removes commits, or what leads to them.
func losesHistory(verb string, p *shell.Flags) bool {
	switch verb {
	case "switch":
		return p.Has("C", "force-create")
	case "stash":
		return shell.OneOf(p.Arg(0), "drop", "clear")
	case "branch":
		return p.Has("D", "M", "C") || p.Has("f", "force") && (len(p.Args) > 0 || p.Has("d", "delete"))
	case "tag":
		return len(p.Args) > 0 && p.Has("d", "delete", "f", "force") && !p.Has("l", "list", "v", "verify")
	case "reflog":
		return shell.OneOf(p.Arg(0), "expire", "delete", "drop")
	case "gc":
		when, ok := p.Value("prune")
		return ok && !shell.OneOf(when.Text, "never", "2.weeks.ago") || p.Has("prune") && !ok
	case "prune", "filter-branch", "filter-repo", "lfs-prune",
		"obliterate", "clear", "clear-soft", "delete-branch", "delete-tag", "delete-merged-branches", "delete-squashed-branches", "delete-submodule": // of git-extras
		return (!p.Has("analyze") || p.Has("f", "force", "d", "delete")) && !p.Dry("dry-run")
	case "replace", "fast-import":
		return p.Has("f", "force", "d", "delete")
	case "update-ref":
		return p.Has("d", "stdin") || len(p.Args) > 1
	case "symbolic-ref":
		return p.Has("d", "delete")
	case "notes":
		return shell.OneOf(p.Arg(0), "remove", "prune") && !p.Dry("n", "dry-run")
	case "lfs":
		return p.Arg(0) == "prune" && !p.Dry("dry-run", "d")
	}
	return false
}

// gitCommands runs the commands that a verb of git has among its arguments.
func (s rules) gitCommands(verb string, args []shell.Field, p *shell.Flags) {
	behind := func(word string) []shell.Field {
		at := slices.IndexFunc(args, func(a shell.Field) bool { return a.Text == word })
		return args[at+1:]
	}
	switch {
	case verb == "submodule" && p.Arg(0) == "foreach":
		rest := behind("foreach")
		for len(rest) > 0 && shell.OneOf(rest[0].Text, "--recursive", "--quiet", "-q") {
			rest = rest[1:]
		}
		s.Run(shell.Join(rest), shell.Stream{})
	case verb == "bisect" && p.Arg(0) == "run":
		s.Command(behind("run"), shell.Stream{})
	case verb == "rebase":
		if cmd, ok := p.Value("x", "exec"); ok {
			s.Run(cmd.Code(), shell.Stream{})
		}
	case verb == "difftool", verb == "mergetool":
		if cmd, ok := p.Value("x", "extcmd"); ok {
			s.MaybeRun(cmd.Code() + " ${_}") // git adds files
		}
	case verb == "filter-branch":
		for _, a := range p.Args {
			s.MaybeRun(a.Text)
		}
		for i, a := range args {
			if strings.HasSuffix(a.Text, "-filter") && i+1 < len(args) {
				s.MaybeRun(args[i+1].Text)
			}
		}
	}
}

func (s rules) gitPush(p *shell.Flags) {
	for _, n := range p.Names {
		switch {
		case n == "f", n == "d", n == "force", n == "delete", n == "prune", n == "mirror",
			len(n) > 1 && (shell.Abbreviates(n, "delete") || shell.Abbreviates(n, "prune") || shell.Abbreviates(n, "mirror") || shell.Abbreviates(n, "force")),
			strings.HasPrefix(n, "force-w") && strings.HasPrefix("force-with-lease", n):
			s.Add(detector.GitHistory)
		}
	}
	for i, a := range p.Args {
		if strings.HasPrefix(a.Text, "+") || i > 0 && strings.HasPrefix(a.Text, ":") && len(a.Text) > 1 {
			s.Add(detector.GitHistory)
		}
	}
}

// gitCheckout tells a switch to a branch, which git refuses if it would lose
// changes, from the restoring of paths, which it does not.
func (s rules) gitCheckout(args []shell.Field, p *shell.Flags) {
	if p.Has("f", "force") {
		s.Add(detector.GitWorktree)
		return
	}
	if p.Has("B") {
		s.Add(detector.GitHistory)
		return
	}
	if p.Has("b", "t", "track", "orphan", "detach", "d", "l", "p", "patch") {
		return
	}
	for i, a := range args {
		if a.Text == "--" {
			if i+1 < len(args) {
				s.Add(detector.GitWorktree)
			}
			return
		}
	}
	if p.Has("pathspec-from-file") || len(p.Args) > 1 || p.Has("ours", "theirs") && len(p.Args) > 0 || len(p.Args) == 1 && isPathspec(p.Args[0]) {
		s.Add(detector.GitWorktree)
	}
}

// isPathspec reports whether a word is rather a path than a branch.
func isPathspec(f shell.Field) bool {
	a := f.Text
	if f.Glob || strings.ContainsAny(a, "*?[") || strings.HasPrefix(a, ":") || strings.HasPrefix(a, "/") || strings.HasSuffix(a, "/") {
		return true
	}
	if a == "." || a == ".." || strings.HasPrefix(a, "./") || strings.HasPrefix(a, "../") {
		return true
	}
	at := strings.LastIndexByte(a, '.')
	return at > 0 && shell.In(a[at+1:], "go md py js ts tsx jsx mjs c h cc cpp hpp rs java kt rb php sh txt json yaml yml toml html css scss sql lock xml cfg ini conf log env csv tf mod sum "+
		"swift proto vue svelte rst lua pl ex exs")
}

func (s rules) otherVCS(name string, args []shell.Field) {
	p := shell.ParseFlags(args, "mrR", "message rev repository")
	bad := name == "bfg"
	if p.Help || p.Has("help") {
		return
	}
	switch name {
	case "hg":
		bad = shell.OneOf(p.Arg(0), "strip", "purge", "revert", "rollback", "clean") || shell.OneOf(p.Arg(0), "update", "up", "checkout", "co") && p.Has("C", "clean") ||
			p.Arg(0) == "push" && p.Has("f", "force")
		bad = bad && !p.Dry("n", "dry-run")
	case "svn":
		bad = shell.OneOf(p.Arg(0), "revert", "delete", "del", "remove", "rm") || p.Arg(0) == "cleanup" && p.Has("remove-unversioned", "remove-ignored")
		if p.Has("keep-local") {
			bad = false
		}
	case "fossil":
		bad = shell.OneOf(p.Arg(0), "clean", "revert", "purge") && !p.Dry("n", "dry-run")
	case "p4":
		bad = shell.OneOf(p.Arg(0), "revert", "obliterate", "delete") && !p.Has("n")
	case "jj":
		bad = shell.OneOf(p.Arg(0), "abandon", "restore") || p.Arg(0) == "op" && shell.OneOf(p.Arg(1), "restore", "abandon") || shell.In(p.Arg(0), "bookmark tag") && p.Arg(1) == "delete" ||
			p.Arg(1) == "push" && p.Has("deleted") && !p.Dry("dry-run")
	}
	if bad {
		s.Add(detector.GitHistory)
	}
}
