package risk

import "strings"

// ssh judges the command that another host runs.
func (s *shell) ssh(args []field, in stream) {
	host := false
	for len(args) > 0 {
		a := args[0].s
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
					value, args = args[0].s, args[1:]
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
			s.run(joinFields(args), in)
			return
		}
	}
	if host {
		s.feed(in, "")
	}
}

// sshOption judges an option of ssh that is a command.
func (s *shell) sshOption(value string) {
	name, cmd, _ := strings.Cut(value, "=")
	if oneOf(strings.ToLower(name), "proxycommand", "localcommand", "knownhostscommand", "remotecommand") {
		s.run(cmd, stream{})
	}
}

func (s *shell) su(args []field, in stream) {
	for i := 0; i < len(args); i++ {
		a := args[i].s
		switch {
		case oneOf(a, "-c", "--command", "--session-command") || len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c"):
			if i+1 < len(args) {
				s.runField(args[i+1], in)
			}
			return
		case strings.HasPrefix(a, "--command="):
			s.run(args[i].code()[len("--command="):], in)
			return
		case oneOf(a, "-u", "-g", "-s", "--user", "--group", "--shell"):
			if i++; a == "-u" || a == "--user" {
				rest := args[min(i+1, len(args)):]
				if len(rest) > 0 && rest[0].s == "--" {
					rest = rest[1:]
				}
				s.command(rest, in)
				return
			}
		case a == "--help" || a == "--version":
			return
		}
	}
	s.feed(in, "")
}

// afterOptions returns the arguments behind the options.
func afterOptions(args []field, short, long string) []field {
	for len(args) > 0 {
		a := args[0].s
		if len(a) < 2 || a[0] != '-' {
			return args
		}
		args = args[1:]
		if a == "--" {
			return args
		}
		if name, ok := strings.CutPrefix(a, "--"); ok {
			if !strings.Contains(name, "=") && listed(long, name) && len(args) > 0 {
				args = args[1:]
			}
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte(short, a[j]) >= 0 {
				if j+1 == len(a) && len(args) > 0 {
					args = args[1:]
				}
				break
			}
		}
	}
	return args
}

const containerValues = "env env-file user workdir name volume network publish entrypoint label mount host config context platform memory cpus hostname file project-name project-directory profile index detach-keys pull restart cap-add device ip log-driver shm-size tmpfs ulimit add-host dns gpus ipc pid security-opt signal filter"

// docker judges docker, podman and compose.
func (s *shell) docker(name string, args []field, in stream) {
	args = afterOptions(args, "HlcfpD", containerValues)
	compose := strings.HasSuffix(name, "compose")
	if len(args) > 0 && args[0].s == "compose" {
		compose = true
		args = afterOptions(args[1:], "fp", containerValues)
	}
	if len(args) == 0 {
		return
	}
	verb := args[0].s
	group := ""
	if !compose && oneOf(verb, "container", "image", "volume", "network", "system", "builder", "buildx", "context", "stack", "service", "swarm", "node", "secret", "config", "plugin", "pod", "manifest", "trust", "machine") && len(args) > 1 {
		group, args = verb, args[1:]
		verb = args[0].s
	}
	if args[0].unknown {
		s.found |= Opaque
		return
	}
	args = args[1:]
	p := parseFlags(args, "eutvns", containerValues)
	for _, n := range p.names {
		if n == "help" && !oneOf(verb, "exec", "run") {
			return
		}
	}
	switch verb {
	case "exec", "run", "create":
		rest := afterOptions(args, "euwvpnlhmcG", containerValues)
		if verb != "exec" {
			for i, a := range args[:len(args)-len(rest)] {
				if a.s == "--entrypoint" && i+1 < len(args) && isRunName(baseName(args[i+1].s)) && len(rest) > 0 {
					s.command(append([]field{args[i+1]}, rest[1:]...), in)
					return
				}
				if cmd, ok := strings.CutPrefix(a.s, "--entrypoint="); ok && isRunName(baseName(cmd)) && len(rest) > 0 {
					s.command(append([]field{{s: cmd}}, rest[1:]...), in)
					return
				}
			}
		}
		if len(rest) > 1 {
			if rest = rest[1:]; rest[0].s == "--" {
				rest = rest[1:]
			}
			s.command(rest, in)
		}
	case "rm", "rmi", "remove", "prune", "delete":
		if compose || !p.dry("dry-run") && (len(p.args) > 0 || verb == "prune") {
			if compose && p.dry("dry-run") {
				return
			}
			s.found |= Teardown
		}
	case "kill":
		if sig, ok := p.value("s", "signal"); !ok || strings.Contains(strings.ToUpper(sig.s), "KILL") || sig.s == "9" {
			s.found |= Kill
		}
	case "down":
		if compose && (p.has("v", "volumes", "rmi") || p.has("remove-orphans")) && !p.dry("dry-run") {
			s.found |= Teardown
		}
	case "leave", "reset":
		if group == "swarm" || group == "system" || group == "machine" {
			s.found |= Teardown
		}
	case "system", "volume":
	}
}

// kubectl judges kubectl and oc.
func (s *shell) kubectl(args []field, in stream) {
	const long = "namespace context cluster kubeconfig user server token as container output selector filename field-selector patch type replicas timeout grace-period image"
	rest := afterOptions(args, "nsc", long)
	if len(rest) == 0 {
		return
	}
	if rest[0].unknown {
		s.found |= Opaque
		return
	}
	verb := rest[0].s
	p := parseFlags(rest[1:], "nclofp", long)
	for _, n := range p.names {
		if (n == "help" || n == "h") && verb != "exec" {
			return
		}
	}
	dry := false
	for i, n := range p.names {
		if n != "dry-run" {
			continue
		}
		dry = true
		if v, ok := p.value("dry-run"); ok && oneOf(v.s, "none", "false") {
			dry = false
		}
		_ = i
	}
	switch verb {
	case "exec", "run", "debug", "rsh":
		for i, a := range rest {
			if a.s == "--" {
				s.command(rest[i+1:], in)
				return
			}
		}
		cmd := afterOptions(rest[1:], "ncf", long+" image")
		if len(cmd) > 1 {
			s.command(afterOptions(cmd[1:], "nc", long), in)
		}
	case "delete":
		if !dry {
			s.found |= Teardown
		}
	case "drain", "evict":
		if !dry {
			s.found |= Teardown
		}
	case "replace":
		if p.has("force") && !dry {
			s.found |= Teardown
		}
	case "apply":
		if p.has("prune") && !dry {
			for _, n := range p.names {
				if n == "prune" {
					s.found |= Teardown
				}
			}
		}
	case "scale":
		if n, ok := p.value("replicas"); ok && n.s == "0" && !dry {
			s.found |= Teardown
		}
	case "get":
		if _, ok := p.value("o", "output"); ok && len(p.args) > 0 && (strings.HasPrefix(p.args[0].s, "secret")) {
			s.found |= CredentialRead
		}
	}
}

// tmux judges what tmux ends and what it runs or types.
func (s *shell) tmux(args []field, in stream) {
	rest := afterOptions(args, "cfLST", "")
	for i, a := range args {
		if a.s == "-c" && i+1 < len(args) && len(args)-len(rest) > i {
			s.runField(args[i+1], in)
		}
	}
	start := 0
	for i := 0; i <= len(rest); i++ {
		if i == len(rest) || rest[i].s == ";" || strings.HasSuffix(rest[i].s, ";") && i > start && strings.HasPrefix(rest[start].s, "kill") {
			s.tmuxCommand(rest[start:i])
			start = i + 1
		}
	}
}

func (s *shell) tmuxCommand(f []field) {
	if len(f) == 0 {
		return
	}
	verb, args := f[0].s, f[1:]
	is := func(name, alias string) bool {
		return verb == alias || len(verb) > 5 && strings.HasPrefix(name, verb)
	}
	var cmd []field
	for _, a := range args {
		if a.s == "--help" {
			return
		}
	}
	switch {
	case is("kill-server", "kill-server"), is("kill-session", "kill-ses"), is("kill-window", "killw"), is("kill-pane", "killp"):
		s.found |= Kill
		return
	case is("respawn-pane", "respawnp"), is("respawn-window", "respawnw"):
		if p := parseFlags(args, "cet", ""); p.has("k") {
			s.found |= Kill
		}
		cmd = afterOptions(args, "cet", "")
	case is("send-keys", "send"):
		s.tmuxKeys(afterOptions(args, "tN", ""))
		return
	case is("set-buffer", "setb"):
		return
	case is("run-shell", "run"), is("if-shell", "if"):
		cmd = afterOptions(args, "dt", "")
		for _, a := range cmd {
			s.runField(a, stream{})
			s.tmuxCommand([]field{a})
		}
		return
	case is("new-session", "new"):
		cmd = afterOptions(args, "ceFfnstxy", "")
	case is("new-window", "neww"):
		cmd = afterOptions(args, "ceFnt", "")
	case is("split-window", "splitw"):
		cmd = afterOptions(args, "celFtp", "")
	case is("pipe-pane", "pipep"), is("display-popup", "popup"):
		cmd = afterOptions(args, "tcdehsSTwxy", "")
	case is("set-hook", "set-hook"), is("bind-key", "bind"):
		cmd = afterOptions(args, "tTN", "")
		if len(cmd) > 1 {
			s.tmuxCommand(cmd[1:])
			if fields := strings.Fields(cmd[1].s); len(fields) > 1 {
				var inner []field
				for _, w := range fields {
					inner = append(inner, field{s: unquote(w)})
				}
				s.tmuxCommand(inner)
			}
		}
		return
	default:
		return
	}
	if len(cmd) == 1 {
		s.runField(cmd[0], stream{})
	} else if len(cmd) > 1 {
		s.command(cmd, stream{})
	}
}

// tmuxKeys judges the text that send-keys types, in which some words name keys.
func (s *shell) tmuxKeys(keys []field) {
	var b strings.Builder
	for _, k := range keys {
		switch strings.ToLower(k.s) {
		case "enter", "c-m", "c-j", "kpenter":
			b.WriteByte('\n')
		case "space":
			b.WriteByte(' ')
		case "tab", "c-i":
			b.WriteByte('\t')
		case "bspace", "c-h":
			b.WriteByte('\b')
		case "c-c":
			b.WriteByte('\x03')
		case "c-u":
			b.WriteByte('\x15')
		case "escape", "up", "down", "left", "right", "home", "end", "c-d", "c-z", "c-l", "c-a", "c-e", "c-k", "c-w", "dc", "ic":
		default:
			b.WriteString(k.code())
		}
	}
	s.run(asTyped(b.String()), stream{})
}

func (s *shell) screen(args []field, in stream) {
	for i, a := range args {
		if a.s == "-X" && i+1 < len(args) {
			switch args[i+1].s {
			case "quit", "kill":
				s.found |= Kill
			case "stuff":
				if i+2 < len(args) {
					s.run(asTyped(strings.NewReplacer("^M", "\n", `\n`, "\n", `\r`, "\n").Replace(args[i+2].code())), stream{})
				}
			case "exec":
				s.command(args[i+2:], stream{})
			}
			return
		}
	}
	s.command(afterOptions(args, "cehpsStT", ""), in)
}

// runner judges programs that each have their own form of running another.
func (s *shell) runner(name string, args []field, in stream) {
	switch name {
	case "at", "batch":
		p := parseFlags(args, "fqtdrc", "")
		if p.has("d", "r") && name == "at" {
			s.found |= ForcedDelete
		} else if !p.has("l", "c", "V") {
			s.found |= Persistence
			s.feed(in, "")
		}
		return
	case "crontab":
		p := parseFlags(args, "u", "")
		switch {
		case p.has("l", "V"):
		case p.has("r"):
			s.found |= ForcedDelete
		case len(p.args) > 0 || in.kind > noStream && !p.has("e"):
			s.found |= Persistence
		}
		if in.kind == textStream {
			s.maybeRun(in.text)
		}
		return
	case "expect":
		if p := parseFlags(args, "c", ""); p.has("c") {
			code, _ := p.value("c")
			s.code("tcl", code.code())
		}
		return
	case "gcloud", "vagrant", "fly", "flyctl", "nix":
		s.tearsDown(name, args)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case oneOf(a.s, "-c", "--command", "--run", "-C", "-s") && i+1 < len(args):
			if name == "nix" || name == "nix-shell" && a.s == "-c" {
				s.command(args[i+1:], in)
				return
			}
			if name == "script" && a.s == "-s" || name == "flock" && a.s != "-c" && a.s != "--command" {
				continue
			}
			s.runField(args[i+1], in)
			return
		case strings.HasPrefix(a.s, "--command="):
			s.run(a.code()[len("--command="):], in)
			return
		}
	}
	switch name {
	case "script":
		if cmd := afterOptions(args, "tTBIOmE", ""); len(cmd) > 1 {
			s.command(cmd[1:], in) // the BSD form
		}
	case "flock":
		if cmd := afterOptions(args, "wE", "timeout wait conflict-exit-code"); len(cmd) > 1 {
			s.command(cmd[1:], in)
		}
	case "entr":
		s.command(afterOptions(args, "", ""), unknown)
	case "sg":
		if len(args) > 1 {
			s.runField(args[len(args)-1], in)
		}
	case "machinectl":
		if len(args) > 2 && args[0].s == "shell" {
			s.command(args[2:], in)
		}
	}
}

// interpreter judges the code that an interpreter gets in its arguments or reads.
func (s *shell) interpreter(name string, args []field, in stream) {
	language := strings.TrimRight(name, "23.")
	short, inline := "", "ceEprR"
	switch language {
	case "python", "pypy", "ipython":
		language, inline, short = "python", "c", "WXmQ"
	case "perl":
		inline, short = "eE", "IMmCDdFlix0"
	case "ruby", "irb", "jruby":
		language, inline, short = "ruby", "e", "rICEKx"
	case "node", "nodejs", "bun", "deno":
		language, inline, short = "node", "ep", "rC"
	case "php":
		inline, short = "rBRE", "dczf"
	case "pwsh", "powershell", "cmd":
		s.powershellCommand(args, in)
		return
	case "tclsh":
		language = "tcl"
	case "osascript", "Rscript", "lua", "luajit", "groovy", "julia", "elixir":
		inline = "e"
	}
	ran := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case oneOf(a.s, "--version", "--help", "-V", "-h"):
			return
		case oneOf(a.s, "eval", "--eval", "--print", "--command") || strings.HasPrefix(a.s, "--eval=") || strings.HasPrefix(a.s, "--print="):
			if _, text, ok := strings.Cut(a.s, "="); ok {
				s.codeField(language, field{s: text, unknown: a.unknown, from: a.from})
			} else if i+1 < len(args) {
				i++
				s.codeField(language, args[i])
			}
			ran = true
			continue
		case a.s == "-m" && language == "python":
			if i+1 < len(args) && oneOf(args[i+1].s, "timeit", "pdb", "code", "cProfile", "trace") {
				continue
			}
			return
		case a.s == "-" || len(a.s) < 2 || a.s[0] != '-' || a.reads != nil:
			switch {
			case ran:
			case a.s == "-":
				s.feed(in, language)
			default:
				s.runFile(a, args[i+1:], in, language)
				switch next := args[i+1:]; baseName(a.s) {
				case "manage.py":
					if len(next) > 0 && oneOf(next[0].s, "flush", "reset_db") {
						s.found |= SQLUnfiltered
					}
				case "artisan":
					s.tearsDown("artisan", next)
				}
			}
			return
		}
		if strings.HasPrefix(a.s, "--") {
			continue
		}
		for j := 1; j < len(a.s); j++ {
			c := a.s[j]
			if strings.IndexByte(inline, c) >= 0 {
				code := a
				if code.s = a.s[j+1:]; code.s == "" {
					if i++; i < len(args) {
						code = args[i]
					}
				}
				s.codeField(language, code)
				ran = true
				break
			}
			if strings.IndexByte(short, c) >= 0 {
				if j+1 == len(a.s) && !(language == "perl" && strings.IndexByte("lix0F", c) >= 0) {
					i++
				}
				if language == "perl" && (c == 'l' || c == '0' || c == 'i') && j+1 < len(a.s) && a.s[j+1] != '.' {
					continue
				}
				break
			}
		}
	}
	if !ran {
		s.feed(in, language)
	}
}

// codeField judges code in a word.
func (s *shell) codeField(language string, f field) {
	s.found |= f.from & runnable
	if strings.Trim(f.s, hole) == "" && f.unknown {
		s.found |= Opaque
	}
	s.code(language, f.s)
}

// editor judges the commands that an editor is started with.
func (s *shell) editor(name string, args []field, in stream) {
	run := func(text string) {
		text = strings.TrimLeft(text, ": ")
		if at := strings.IndexByte(text, '!'); at >= 0 && at < 12 {
			s.run(text[at+1:], stream{})
		}
		for _, quote := range [...]string{"system(", "systemlist(", "os.execute(", "shell-command"} {
			if strings.Contains(text, quote) {
				s.literals(text)
				break
			}
		}
		if strings.Contains(text, "delete(") || strings.Contains(text, "delete-file") || strings.Contains(text, "delete-directory") {
			s.found |= ForcedDelete
		}
		if oneOf(text, "%d", "%d|x", "%d|wq", "%delete", "1,$d") {
			s.found |= EmptyFile
		}
	}
	for i, a := range args {
		switch {
		case oneOf(a.s, "-c", "--cmd", "-S", "--eval", "-eval", "-sc", "-f", "--execute") && i+1 < len(args):
			run(args[i+1].code())
		case strings.HasPrefix(a.s, "+"):
			run(a.code()[1:])
		case strings.HasPrefix(a.s, "--eval="):
			run(a.code()[len("--eval="):])
		case strings.HasPrefix(a.s, "-c") && len(a.s) > 2:
			run(a.code()[2:])
		}
	}
	if in.kind == textStream {
		for line := range strings.Lines(in.text) {
			run(strings.TrimSpace(line))
		}
	}
}

func (s *shell) build(name string, args []field, in stream) {
	p := parseFlags(args, "fCjoWIl", "file directory makefile eval justfile")
	if text, ok := p.value("eval"); ok && strings.Contains(text.s, "\t") || ok && strings.Contains(text.s, "$(shell") {
		s.maybeRun(unquote(text.s[strings.IndexAny(text.s, "\t ")+1:]))
	}
	if file, ok := p.value("f", "file", "makefile"); ok && oneOf(file.s, "-", "/dev/stdin") && in.kind == textStream {
		for line := range strings.Lines(in.text) {
			if recipe, ok := strings.CutPrefix(line, "\t"); ok {
				s.maybeRun(strings.TrimLeft(recipe, "@-+"))
			}
		}
	}
	if name == "rails" && oneOf(p.arg(0), "runner", "r") && len(p.args) > 1 {
		s.code("ruby", p.args[1].code())
		if strings.Contains(p.arg(1), "delete_all") || strings.Contains(p.arg(1), "destroy_all") {
			s.found |= SQLUnfiltered
		}
	}
	for _, a := range p.args {
		if name != "make" && name != "ninja" && name != "gmake" && strings.HasPrefix(a.s, "db:") && oneOf(a.s, "db:drop", "db:reset", "db:drop:all", "db:migrate:reset", "db:truncate_all", "db:purge") {
			s.found |= SQLUnfiltered
		}
	}
}

// tearsDown applies the rules about infrastructure.
func (s *shell) tearsDown(name string, args []field) bool {
	p := parseFlags(args, "", "")
	for _, a := range args {
		if oneOf(a.s, "--help", "-help", "-h") {
			return true
		}
	}
	bad := false
	switch name {
	case "terraform", "tofu", "terragrunt", "opentofu", "cdktf":
		single := func(flag string) bool {
			for _, a := range args {
				if a.s == flag || a.s == "-"+flag || strings.HasPrefix(a.s, flag+"=") && !strings.HasSuffix(a.s, "=false") {
					return true
				}
			}
			return false
		}
		switch {
		case single("-help"):
		case p.any("plan", "show", "validate", "fmt", "output"):
		case p.any("destroy", "taint", "force-unlock"):
			bad = true
		case p.any("apply"):
			bad = single("-destroy") || single("-auto-approve")
		case p.any("state"):
			bad = p.any("rm", "push") && !single("-dry-run")
		case p.any("workspace"):
			bad = p.any("delete")
		}
	case "pulumi":
		bad = oneOf(p.arg(0), "destroy", "down", "dn") && !p.has("preview-only") || p.arg(0) == "stack" && p.arg(1) == "rm"
	case "cdk", "sam", "serverless", "sls", "eksctl", "kops", "kind", "k3d", "minikube", "vercel", "netlify", "firebase", "wrangler", "doctl", "linode-cli", "hcloud", "scw", "ibmcloud",
		"oci", "railway", "render", "supabase", "amplify", "eb", "copilot", "civo", "vultr-cli", "gcloud", "az", "consul", "etcdctl", "vault", "nomad", "argocd", "flux", "istioctl",
		"rancher", "velero", "vagrant", "virsh", "VBoxManage", "vboxmanage", "multipass", "fly", "flyctl", "heroku", "aliyun", "tccli", "openstack", "ec2", "packer", "ansible-vault", "kafka-topics", "kafka-topics.sh", "rabbitmqctl", "nix":
		for _, a := range p.args {
			w := a.s
			if at := strings.LastIndexByte(w, ':'); at >= 0 {
				w = w[at+1:] // heroku apps:destroy
			}
			switch strings.ToLower(w) {
			case "delete", "destroy", "remove", "rm", "del", "purge", "terminate", "undefine", "unregistervm", "uninstall", "kill", "reset", "delete-cluster", "delete_vhost", "delete_queue", "force_reset", "purge_queue":
				bad = true
			default:
				lower := strings.ToLower(w)
				bad = bad || strings.HasPrefix(lower, "delete-") || strings.HasPrefix(lower, "purge-") || oneOf(name, "firebase", "netlify", "aliyun", "tccli") && strings.Contains(lower, "delete")
			}
		}
		for _, n := range p.names {
			bad = bad || strings.HasPrefix(name, "kafka-topics") && n == "delete"
			if oneOf(n, "dry-run", "dryrun", "check", "validate-only", "what-if", "preview") {
				return true
			}
		}
	case "helm", "helmfile", "helm3":
		bad = p.any("uninstall", "delete", "del", "un", "destroy") && !p.dry("dry-run")
	case "aws":
		for i, a := range p.args {
			verb := a.s
			if i == 0 && len(p.args) > 1 {
				continue
			}
			for _, prefix := range [...]string{"delete-", "terminate-", "remove-", "deregister-", "purge-", "destroy-", "schedule-key-deletion", "revoke-", "stop-instances", "batch-delete-"} {
				bad = bad || strings.HasPrefix(verb, prefix)
			}
		}
		if p.any("s3") {
			bad = bad || p.any("rm", "rb") || p.any("sync") && p.has("delete")
			bad = bad && !p.dry("dryrun")
		}
		bad = bad && !p.dry("dry-run", "generate-cli-skeleton")
	case "ansible":
		q := parseFlags(args, "maiubfle", "module-name args inventory user forks limit extra-vars")
		module, _ := q.value("m", "module-name")
		text, ok := q.value("a", "args")
		if ok && !q.has("C", "check") && (module.s == "" || oneOf(module.s, "shell", "command", "raw", "ansible.builtin.shell", "ansible.builtin.command")) {
			s.run(text.code(), stream{})
		} else if ok && strings.Contains(text.s, "state=absent") && !q.has("C", "check") {
			s.found |= ForcedDelete
		}
	case "npm", "cargo", "gem", "twine", "pnpm", "yarn":
		bad = oneOf(p.arg(0), "unpublish", "yank") && !p.dry("dry-run")
		if !bad {
			return false
		}
	case "prisma", "knex", "sequelize", "alembic", "flyway", "liquibase", "artisan", "typeorm", "drizzle-kit", "goose", "migrate", "dbmate", "atlas", "bin/rails":
		for _, a := range p.args {
			bad = bad || oneOf(a.s, "reset", "db:drop", "migrate:fresh", "migrate:reset", "db:wipe", "clean", "dropAll", "drop", "drop-all", "schema:drop", "db:migrate:undo:all") || name == "alembic" && a.s == "base"
		}
	default:
		return false
	}
	if bad {
		s.found |= Teardown
	}
	return true
}
