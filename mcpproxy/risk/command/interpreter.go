package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/code"
	"auditproxy/mcpproxy/risk/command/infra"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// runner judges programs that each have their own form of running another.
func (s rules) runner(name string, args []shell.Field, in shell.Stream) {
	switch name {
	case "at", "batch":
		p := shell.ParseFlags(args, "fqtdrc", "")
		if p.Has("d", "r") && name == "at" {
			s.Add(detector.ForcedDelete)
		} else if !p.Has("l", "c", "V") {
			s.Add(detector.Persistence)
			s.Feed(in, "")
		}
		return
	case "crontab":
		p := shell.ParseFlags(args, "u", "")
		switch {
		case p.Has("l", "V"):
		case p.Has("r"):
			s.Add(detector.ForcedDelete)
		case len(p.Args) > 0 || in.Kind > shell.None && !p.Has("e"):
			s.Add(detector.Persistence)
		}
		if in.Kind == shell.Text {
			s.MaybeRun(in.Text)
		}
		return
	case "expect":
		if p := shell.ParseFlags(args, "c", ""); p.Has("c") {
			script, _ := p.Value("c")
			code.Judge(s.Shell, "tcl", script.Code())
		}
		return
	case "gcloud", "vagrant", "fly", "flyctl", "nix":
		infra.TearsDown(s.Shell, name, args)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case shell.OneOf(a.Text, "-c", "--command", "--run", "-C", "-s") && i+1 < len(args):
			if name == "nix" || name == "nix-shell" && a.Text == "-c" {
				s.Command(args[i+1:], in)
				return
			}
			if name == "script" && a.Text == "-s" || name == "flock" && a.Text != "-c" && a.Text != "--command" {
				continue
			}
			s.RunField(args[i+1], in)
			return
		case name == "script" && isCluster(a.Text, "aefq") && strings.HasSuffix(a.Text, "c") && i+1 < len(args):
			s.RunField(args[i+1], in)
			return
		case strings.HasPrefix(a.Text, "--command="):
			s.Run(a.Code()[len("--command="):], in)
			return
		}
	}
	switch name {
	case "script":
		if cmd := shell.AfterOptions(args, "tTBIOmE", ""); len(cmd) > 1 {
			s.Command(cmd[1:], in) // the BSD form
		}
	case "flock":
		if cmd := shell.AfterOptions(args, "wE", "timeout wait conflict-exit-code"); len(cmd) > 1 {
			s.Command(cmd[1:], in)
		}
	case "entr":
		s.Command(shell.AfterOptions(args, "", ""), shell.Anything)
	case "sg":
		if len(args) > 1 {
			s.RunField(args[len(args)-1], in)
		}
	case "machinectl":
		if len(args) > 2 && args[0].Text == "shell" {
			s.Command(args[2:], in)
		}
	}
}

// isCluster reports whether a word has one of the short options first, with others
// behind it, as -qc.
func isCluster(text, first string) bool {
	return len(text) > 2 && text[0] == '-' && strings.IndexByte(first, text[1]) >= 0
}

// interpreter judges the code that an interpreter gets in its arguments or reads.
func (s rules) interpreter(name string, args []shell.Field, in shell.Stream) {
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
		code.PowerShellArgs(s.Shell, args, in)
		return
	case "tsx", "ts-node":
		language, inline = "node", "ep"
	case "go":
		if len(args) < 2 || args[0].Text != "run" {
			return
		}
		args, inline = args[1:], ""
	case "tclsh":
		language = "tcl"
	case "osascript", "Rscript", "lua", "luajit", "groovy", "julia", "elixir", "iex", "ghc", "runghc", "kotlinc":
		inline = "e"
	}
	if len(args) > 1 && (name == "deno" || name == "bun") {
		switch args[0].Text {
		case "x":
			s.Command(args[1:], in)
			return
		case "run":
			args = args[1:]
		}
	}
	ran := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case shell.In(a.Text, "--version --help -V -h"), len(args) == 1 && (a.Text == "-v" && language != "python" || name == "php" && shell.In(a.Text, "-i -m --ini")):
			return
		case shell.OneOf(a.Text, "eval", "--eval", "--print", "--command") || strings.HasPrefix(a.Text, "--eval=") || strings.HasPrefix(a.Text, "--print="):
			if _, text, ok := strings.Cut(a.Text, "="); ok {
				s.codeField(language, shell.Field{Text: text, Unknown: a.Unknown, From: a.From})
			} else if i+1 < len(args) {
				i++
				s.codeField(language, args[i])
			}
			ran = true
			continue
		case a.Text == "-m" && language == "python":
			if i+1 < len(args) && shell.OneOf(args[i+1].Text, "timeit", "pdb", "code", "cProfile", "trace") {
				continue
			}
			if i+1 < len(args) && args[i+1].Text == "pip" {
				s.Command(args[i+1:], in)
			}
			if i+2 < len(args) && shell.OneOf(args[i+1].Text, "venv", "virtualenv") {
				s.Write(shell.Field{Text: args[len(args)-1].Text + "/bin/activate"}, shell.Stream{Kind: shell.Unknown}, true)
			}
			return
		case a.Text == "-" || len(a.Text) < 2 || a.Text[0] != '-' || a.Reads != nil:
			switch {
			case ran:
			case strings.HasPrefix(a.Text, "https://"), strings.HasPrefix(a.Text, "http://"):
				s.Add(detector.RemoteExec)
			case a.Text == "-":
				s.Feed(in, language)
			default:
				s.RunFile(a, args[i+1:], in, language)
				switch next := args[i+1:]; shell.BaseName(a.Text) {
				case "manage.py":
					s.manage(next)
				case "artisan", "console":
					infra.TearsDown(s.Shell, shell.BaseName(a.Text), next)
				}
			}
			return
		}
		if strings.HasPrefix(a.Text, "--") {
			continue
		}
		for j := 1; j < len(a.Text); j++ {
			c := a.Text[j]
			if language == "node" && a.Text[j:] == "pe" {
				continue // -p is also a flag
			}
			if strings.IndexByte(inline, c) >= 0 {
				inner := a
				if inner.Text = a.Text[j+1:]; inner.Text == "" {
					if i++; i < len(args) {
						inner = args[i]
					}
				}
				s.codeField(language, inner)
				ran = true
				break
			}
			if strings.IndexByte(short, c) >= 0 {
				if j+1 == len(a.Text) && !(language == "perl" && strings.IndexByte("lix0F", c) >= 0) {
					i++
				}
				if language == "perl" && (c == 'l' || c == '0' || c == 'i') && j+1 < len(a.Text) && a.Text[j+1] != '.' {
					continue
				}
				break
			}
		}
	}
	if !ran {
		s.Feed(in, language)
	}
}

// manage judges the commands of Django's manage.py.
func (s rules) manage(args []shell.Field) {
	if len(args) > 0 && (shell.OneOf(args[0].Text, "flush", "reset_db") || args[0].Text == "migrate" && args[len(args)-1].Text == "zero") {
		s.Add(detector.SQLUnfiltered)
	}
}

// codeField judges code in a word.
func (s rules) codeField(language string, f shell.Field) {
	s.Add(f.From & shell.Runnable)
	if strings.Trim(f.Text, shell.Hole) == "" && f.Unknown {
		s.Add(detector.Opaque)
	}
	code.Judge(s.Shell, language, f.Text)
}

// editor judges the commands that an editor is started with.
func (s rules) editor(args []shell.Field, in shell.Stream) {
	run := func(text string) {
		text = strings.TrimLeft(text, ": ")
		if verb, rest, ok := strings.Cut(text, " "); ok {
			switch verb {
			case "py", "py3", "python", "python3", "pyx", "lua", "perl", "ruby", "rubyfile":
				s.codeField(strings.TrimRight(strings.Replace(verb, "thon", "", 1), "3x"), shell.Field{Text: rest})
			case "te", "ter", "term", "terminal":
				s.Run(rest, shell.Stream{})
			}
		}
		if at := strings.IndexByte(text, '!'); at >= 0 && at < 12 {
			s.Run(text[at+1:], shell.Stream{})
		}
		for _, quote := range [...]string{"system(", "systemlist(", "os.execute(", "shell-command", "(call-process", "(start-process", "(make-process", "(term "} {
			if strings.Contains(text, quote) {
				code.Literals(s.Shell, strings.ReplaceAll(strings.ReplaceAll(text, " nil", ""), `" "`, `", "`)) // in Lisp these are two
				break
			}
		}
		if strings.Contains(text, "delete(") || strings.Contains(text, "(delete-file") || strings.Contains(text, "(delete-directory") {
			s.Add(detector.ForcedDelete)
		}
		if shell.OneOf(text, "%d", "%d|x", "%d|wq", "%delete", "1,$d") {
			s.Add(detector.EmptyFile)
		}
	}
	for i, a := range args {
		switch {
		case shell.OneOf(a.Text, "-c", "--cmd", "-S", "--eval", "-eval", "-sc", "-f", "--execute", "-e", "--remote-send", "--remote-expr") && i+1 < len(args):
			run(args[i+1].Code())
		case a.Text == "-l" && i+1 < len(args): // of nvim
			s.RunFile(args[i+1], nil, in, "lua")
		case strings.HasPrefix(a.Text, "+"):
			run(a.Code()[1:])
		case strings.HasPrefix(a.Text, "--eval="):
			run(a.Code()[len("--eval="):])
		case strings.HasPrefix(a.Text, "-c") && len(a.Text) > 2:
			run(a.Code()[2:])
		}
	}
	if in.Kind == shell.Text {
		for line := range strings.Lines(in.Text) {
			run(strings.TrimSpace(line))
		}
	}
}
