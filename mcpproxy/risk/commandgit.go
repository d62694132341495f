package risk

import "strings"

// git judges git: what rewrites or deletes refs, and what discards changes that
// were never committed.
func (s *shell) git(args []field, in stream) {
	clean := false // clean.requireForce is off
	for len(args) > 0 {
		a := args[0].s
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
				clean = s.gitConfig(value) || clean
			}
		default:
			if strings.HasPrefix(a, "-c") {
				clean = s.gitConfig(field{s: a[2:]}) || clean
			}
		}
	}
	if len(args) == 0 {
		return
	}
	if args[0].unknown {
		s.found |= Opaque
		return
	}
	s.gitVerb(args[0].s, args[1:], in, clean)
}

// gitConfig judges a setting, which may be a command. It reports whether clean needs no force.
func (s *shell) gitConfig(f field) bool {
	key, value, _ := strings.Cut(f.code(), "=")
	key = strings.ToLower(key)
	s.gitSetting(key, value)
	return key == "clean.requireforce" && oneOf(strings.ToLower(value), "false", "0", "no", "off")
}

func (s *shell) gitSetting(key, value string) {
	switch {
	case strings.HasPrefix(value, "!"):
		s.maybeRun(value[1:])
	case strings.HasPrefix(key, "alias."):
		s.maybeRun("git " + value)
	case strings.HasPrefix(key, "filter."), strings.HasSuffix(key, "pager"), strings.HasSuffix(key, "editor"), strings.HasSuffix(key, "command"), strings.HasSuffix(key, ".cmd"),
		strings.HasSuffix(key, "askpass"), strings.HasSuffix(key, "textconv"), strings.HasSuffix(key, "fsmonitor"), strings.HasSuffix(key, "external"), strings.HasPrefix(key, "pager."):
		s.maybeRun(value)
	case key == "core.hookspath":
		s.found |= Persistence
	}
}

func (s *shell) gitVerb(verb string, args []field, in stream, clean bool) {
	short, long := "m", "message"
	switch verb {
	case "push":
		short, long = "o", "repo push-option receive-pack exec recurse-submodules"
	case "clean":
		short, long = "e", "exclude"
	case "checkout", "switch":
		short, long = "bBcC", "conflict orphan create force-create"
	case "restore":
		short, long = "s", "source conflict pathspec-from-file"
	case "commit", "tag":
		short, long = "mFCctuS", "message file reuse-message reedit-message author date template fixup squash"
	case "gc", "reflog":
		short, long = "", "expire expire-unreachable"
	case "rebase":
		short, long = "xsXC", "exec onto strategy strategy-option"
	case "branch":
		short, long = "u", "set-upstream-to sort format contains merged no-merged points-at"
	case "grep", "log":
		return
	}
	p := parseFlags(args, short, long)
	for _, n := range p.names {
		if n == "help" || n == "h" && verb != "log" {
			return
		}
	}
	if verb == "push" || verb == "clean" || verb == "rm" || verb == "reflog" || verb == "prune" || verb == "add" || verb == "fetch" || verb == "mv" {
		if p.dry("n", "dry-run") {
			return
		}
	}
	switch verb {
	case "push":
		s.gitPush(&p)
	case "reset":
		if p.has("hard") && !p.has("help") || p.has("merge") && !p.has("mixed") {
			s.found |= GitWorktree
		}
	case "clean":
		if p.has("f", "force") || clean && !p.has("i", "interactive") {
			s.found |= GitWorktree
		}
	case "checkout":
		s.gitCheckout(args, &p)
	case "restore":
		if (!p.has("S", "staged") || p.has("W", "worktree")) && (len(p.args) > 0 || p.has("pathspec-from-file")) && !p.has("p", "patch") {
			s.found |= GitWorktree
		}
	case "switch":
		if p.has("discard-changes", "f", "force") && !p.has("p") {
			s.found |= GitWorktree
		}
		if p.has("C", "force-create") {
			s.found |= GitHistory
		}
	case "checkout-index":
		if p.has("f", "force") {
			s.found |= GitWorktree
		}
	case "read-tree":
		if p.has("reset") && p.has("u") {
			s.found |= GitWorktree
		}
	case "stash":
		if oneOf(p.arg(0), "drop", "clear") {
			s.found |= GitHistory
		}
	case "rm":
		if !p.has("cached") && (len(p.args) > 0 || p.has("pathspec-from-file")) {
			if s.found |= ForcedDelete; p.has("r") {
				s.found |= RecursiveDelete
			}
		}
	case "branch":
		if p.has("D") || p.has("d", "delete") && p.has("f", "force") || p.has("M", "C") || p.has("f", "force") && len(p.args) > 0 {
			s.found |= GitHistory
		}
	case "tag":
		if len(p.args) > 0 && p.has("d", "delete", "f", "force") && !p.has("l", "list", "v", "verify") {
			s.found |= GitHistory
		}
	case "reflog":
		if oneOf(p.arg(0), "expire", "delete", "drop") {
			s.found |= GitHistory
		}
	case "gc":
		if when, ok := p.value("prune"); ok && !oneOf(when.s, "never", "2.weeks.ago") || p.has("prune") && !ok {
			s.found |= GitHistory
		}
	case "prune", "filter-branch", "filter-repo", "replace", "fast-import", "lfs-prune":
		if verb != "replace" && verb != "fast-import" || p.has("f", "force", "d", "delete") {
			s.found |= GitHistory
		}
		for _, a := range p.args {
			if verb == "filter-branch" {
				s.maybeRun(a.s)
			}
		}
		if verb == "filter-branch" {
			for i, a := range args {
				if strings.HasSuffix(a.s, "-filter") && i+1 < len(args) {
					s.maybeRun(args[i+1].s)
				}
			}
		}
	case "update-ref":
		if p.has("d", "stdin") || len(p.args) > 1 {
			s.found |= GitHistory
		}
	case "symbolic-ref":
		if p.has("d", "delete") {
			s.found |= GitHistory
		}
	case "worktree":
		if p.arg(0) == "remove" && p.has("f", "force") {
			s.found |= GitWorktree
		}
	case "submodule":
		switch p.arg(0) {
		case "deinit":
			if p.has("f", "force") {
				s.found |= GitWorktree
			}
		case "foreach":
			for i, a := range args {
				if a.s == "foreach" {
					rest := args[i+1:]
					for len(rest) > 0 && oneOf(rest[0].s, "--recursive", "--quiet", "-q") {
						rest = rest[1:]
					}
					s.run(joinFields(rest), stream{})
					break
				}
			}
		}
	case "bisect":
		if p.arg(0) == "run" {
			for i, a := range args {
				if a.s == "run" {
					s.command(args[i+1:], stream{})
					break
				}
			}
		}
	case "rebase":
		if cmd, ok := p.value("x", "exec"); ok {
			s.run(cmd.code(), stream{})
		}
	case "notes":
		if oneOf(p.arg(0), "remove", "prune") && !p.dry("n", "dry-run") {
			s.found |= GitHistory
		}
	case "lfs":
		if p.arg(0) == "prune" && !p.dry("dry-run", "d") {
			s.found |= GitHistory
		}
	case "config":
		if len(p.args) > 1 {
			i := 0
			if p.args[0].s == "set" {
				i = 1
			}
			if i+1 < len(p.args) {
				s.gitSetting(strings.ToLower(p.args[i].s), p.args[i+1].code())
			}
		}
	case "credential":
		if p.arg(0) == "fill" {
			s.found |= CredentialRead
		}
	}
}

func (s *shell) gitPush(p *flags) {
	for _, n := range p.names {
		switch {
		case n == "f", n == "d", n == "force", n == "delete", n == "prune", n == "mirror", len(n) > 1 && (abbreviates(n, "delete") || abbreviates(n, "prune") || abbreviates(n, "mirror") || abbreviates(n, "force")),
			strings.HasPrefix(n, "force-w") && strings.HasPrefix("force-with-lease", n):
			s.found |= GitHistory
		}
	}
	for i, a := range p.args {
		if strings.HasPrefix(a.s, "+") || i > 0 && strings.HasPrefix(a.s, ":") && len(a.s) > 1 {
			s.found |= GitHistory
		}
	}
}

// gitCheckout tells a switch to a branch, which git refuses if it would lose
// changes, from the restoring of paths, which it does not.
func (s *shell) gitCheckout(args []field, p *flags) {
	if p.has("f", "force") {
		s.found |= GitWorktree
		return
	}
	if p.has("B") {
		s.found |= GitHistory
		return
	}
	if p.has("b", "t", "track", "orphan", "detach", "d", "l", "p", "patch") {
		return
	}
	for i, a := range args {
		if a.s == "--" {
			if i+1 < len(args) {
				s.found |= GitWorktree
			}
			return
		}
	}
	if p.has("pathspec-from-file") || len(p.args) > 1 || p.has("ours", "theirs") && len(p.args) > 0 || len(p.args) == 1 && isPathspec(p.args[0]) {
		s.found |= GitWorktree
	}
}

// isPathspec reports whether a word is rather a path than a branch.
func isPathspec(f field) bool {
	a := f.s
	if f.glob || strings.ContainsAny(a, "*?[") || strings.HasPrefix(a, ":") || strings.HasPrefix(a, "/") || strings.HasSuffix(a, "/") {
		return true
	}
	if a == "." || a == ".." || strings.HasPrefix(a, "./") || strings.HasPrefix(a, "../") {
		return true
	}
	at := strings.LastIndexByte(a, '.')
	return at > 0 && oneOf(a[at+1:], "go", "md", "py", "js", "ts", "tsx", "jsx", "mjs", "c", "h", "cc", "cpp", "hpp", "rs", "java", "kt", "rb", "php", "sh", "txt", "json", "yaml", "yml", "toml",
		"html", "css", "scss", "sql", "lock", "xml", "cfg", "ini", "conf", "log", "env", "csv", "tf", "mod", "sum", "swift", "proto", "vue", "svelte", "rst", "lua", "pl", "ex", "exs")
}

func (s *shell) otherVCS(name string, args []field) {
	p := parseFlags(args, "mrR", "message rev repository")
	bad := name == "bfg"
	switch name {
	case "hg":
		bad = oneOf(p.arg(0), "strip", "purge", "revert", "rollback", "clean") || oneOf(p.arg(0), "update", "up", "checkout", "co") && p.has("C", "clean") || p.arg(0) == "push" && p.has("f", "force")
		bad = bad && !p.dry("n", "dry-run")
	case "svn":
		bad = oneOf(p.arg(0), "revert", "delete", "del", "remove", "rm") || p.arg(0) == "cleanup" && p.has("remove-unversioned", "remove-ignored")
		if p.has("keep-local") {
			bad = false
		}
	case "jj":
		bad = oneOf(p.arg(0), "abandon", "restore") || p.arg(0) == "op" && oneOf(p.arg(1), "restore", "abandon") || p.arg(0) == "bookmark" && p.arg(1) == "delete"
	}
	if bad {
		s.found |= GitHistory
	}
}
