package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/lineedit"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// tmux judges what tmux ends and what it runs or types.
func (s rules) tmux(args []shell.Field, in shell.Stream) {
	rest := shell.AfterOptions(args, "cfLST", "")
	for i, a := range args {
		if a.Text == "-c" && i+1 < len(args) && len(args)-len(rest) > i {
			s.RunField(args[i+1], in)
		}
	}
	start := 0
	for i := 0; i <= len(rest); i++ {
		if i == len(rest) || rest[i].Text == ";" || strings.HasSuffix(rest[i].Text, ";") && i > start && strings.HasPrefix(rest[start].Text, "kill") {
			s.tmuxCommand(rest[start:i])
			start = i + 1
		}
	}
}

func (s rules) tmuxCommand(f []shell.Field) {
	if len(f) == 0 {
		return
	}
	verb, args := f[0].Text, f[1:]
	is := func(name, alias string) bool {
		return verb == alias || len(verb) > 5 && strings.HasPrefix(name, verb)
	}
	var cmd []shell.Field
	for _, a := range args {
		if a.Text == "--help" {
			return
		}
	}
	switch {
	case is("kill-server", "kill-server"), is("kill-session", "kill-ses"), is("kill-window", "killw"), is("kill-pane", "killp"):
		s.Add(detector.Kill)
		return
	case is("respawn-pane", "respawnp"), is("respawn-window", "respawnw"):
		if p := shell.ParseFlags(args, "cet", ""); p.Has("k") {
			s.Add(detector.Kill)
		}
		cmd = shell.AfterOptions(args, "cet", "")
	case is("send-keys", "send"):
		s.tmuxKeys(shell.AfterOptions(args, "tN", ""))
		return
	case is("set-buffer", "setb"):
		return
	case is("run-shell", "run"), is("if-shell", "if"):
		cmd = shell.AfterOptions(args, "dt", "")
		for _, a := range cmd {
			s.RunField(a, shell.Stream{})
			s.tmuxWords(a)
		}
		return
	case is("new-session", "new"):
		cmd = shell.AfterOptions(args, "ceFfnstxy", "")
	case is("new-window", "neww"):
		cmd = shell.AfterOptions(args, "ceFnt", "")
	case is("split-window", "splitw"):
		cmd = shell.AfterOptions(args, "celFtp", "")
	case is("pipe-pane", "pipep"), verb != "display" && is("display-popup", "popup"): // display is display-message
		cmd = shell.AfterOptions(args, "tcdehsSTwxy", "")
	case is("set-option", "set"), is("set-window-option", "setw"):
		if p := shell.AfterOptions(args, "t", ""); len(p) > 1 {
			s.tmuxOption(p[1])
		}
		return
	case is("source-file", "source"):
		for _, a := range shell.AfterOptions(args, "t", "") {
			st := s.Open(a)
			s.Add(st.From & shell.Runnable)
			if st.Kind == shell.Text {
				for line := range strings.Lines(st.Text) {
					s.tmuxWords(shell.Field{Text: line})
				}
			}
		}
		return
	case is("set-hook", "set-hook"), is("bind-key", "bind"):
		cmd = shell.AfterOptions(args, "tTN", "")
		if len(cmd) > 1 {
			s.tmuxCommand(cmd[1:])
			s.tmuxWords(cmd[1])
		}
		return
	default:
		return
	}
	if len(cmd) == 1 {
		s.RunField(cmd[0], shell.Stream{})
	} else if len(cmd) > 1 {
		s.Command(cmd, shell.Stream{})
	}
}

// tmuxOption judges the value of an option, which may be a command of a shell, or a
// format with #(command) in it.
func (s rules) tmuxOption(value shell.Field) {
	if from := strings.Index(value.Text, "#("); from >= 0 {
		text := value.Text[from+2:]
		if end := strings.LastIndexByte(text, ')'); end >= 0 {
			text = text[:end]
		}
		s.MaybeRun(text)
		return
	}
	s.MaybeRun(value.Code())
}

// tmuxWords judges a command of tmux that is one word of another one.
func (s rules) tmuxWords(f shell.Field) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(f.Text), " ")
	rest = strings.TrimSpace(rest)
	inner := []shell.Field{{Text: verb}}
	if n := len(rest); n > 1 && (rest[0] == '"' || rest[0] == '\'') && rest[n-1] == rest[0] {
		inner = append(inner, shell.Field{Text: rest[1 : n-1]})
	} else {
		for w := range strings.FieldsSeq(rest) {
			inner = append(inner, shell.Field{Text: shell.Unquote(w)})
		}
	}
	s.tmuxCommand(inner)
}

// tmuxKeys judges the text that send-keys types, in which some words name keys.
func (s rules) tmuxKeys(keys []shell.Field) {
	var b []byte
	for _, k := range keys {
		if typed, ok := lineedit.AppendKey(b, k.Text); ok {
			b = typed
		} else {
			b = append(b, k.Code()...)
		}
	}
	s.RunTyped(string(b))
}

// types judges what a program types whose arguments are texts behind options.
func (s rules) types(args []shell.Field, short, long string) {
	for _, a := range shell.ParseFlags(args, short, long).Args {
		s.RunTyped(a.Code())
	}
}

func (s rules) screen(args []shell.Field, in shell.Stream) {
	for i, a := range args {
		if a.Text != "-X" {
			continue
		}
		cmd := shell.AfterOptions(args[i+1:], "Sp", "")
		if len(cmd) == 0 {
			return
		}
		switch cmd[0].Text {
		case "quit", "kill":
			s.Add(detector.Kill)
		case "stuff":
			if len(cmd) > 1 {
				s.RunTyped(strings.NewReplacer("^M", "\n", `\n`, "\n", `\r`, "\n").Replace(cmd[1].Code()))
			}
		case "exec":
			s.Command(cmd[1:], shell.Stream{})
		}
		return
	}
	s.Command(shell.AfterOptions(args, "cehpsStT", ""), in)
}
