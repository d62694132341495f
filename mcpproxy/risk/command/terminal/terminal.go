// Package terminal says what commands do in other terminals: what tmux, screen and their like
// start, type and end, and the programs that open windows or type keys. It is pure.
package terminal

import (
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/command/lineedit"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// mux are the rules, in the shell that calls such a program.
type mux struct{ *shell.Shell }

// pasted is the name under which the shell keeps the buffers of a multiplexer.
const pasted = "\x00buffer"

// Judge applies the rule of a program, false if it has none here.
func Judge(sh *shell.Shell, name string, args []shell.Field, in shell.Stream) bool {
	s := mux{sh}
	switch name {
	case "tmux", "byobu":
		s.tmux(args, in)
	case "screen":
		s.screen(args, in)
	case "xdotool", "ydotool":
		if len(args) > 0 && args[0].Text == "type" {
			s.types(args[1:], "d", "delay window")
		}
	case "wtype":
		s.types(args, "dkmMpPs", "")
	case "dotool":
		for line := range strings.Lines(in.Text) {
			if text, ok := strings.CutPrefix(line, "type "); ok {
				s.RunTyped(text)
			}
		}
	case "dtach", "abduco":
		// an option, the name of a socket, the command
		for i, a := range args {
			if len(a.Text) == 2 && strings.Contains("-c-n-A-N", a.Text) && i+2 < len(args) {
				s.Command(shell.AfterOptions(args[i+2:], "er", ""), in)
				break
			}
		}
	case "zellij", "kitty", "kitten", "wezterm", "ghostty", "alacritty", "qdbus", "qdbus6", "i3-msg", "swaymsg",
		"hyprctl", "niri":
		s.remote(args)
	case "bind", "bindkey": // a key of a shell's line editor that types a text, or runs a command
		for _, a := range args {
			_, text, ok := strings.Cut(a.Code(), ":")
			if !ok || name == "bindkey" {
				text = a.Code()
			}
			s.MaybeRun(strings.TrimRight(strings.Trim(text, `"' `), `\nrCMJ-`))
			if key, _, _ := strings.Cut(strings.TrimLeft(a.Text, `"`), `"`); len(key) == 1 && key > " " && ok {
				s.Add(detector.Opaque)
			}
		}
	case "stty": // what is typed means something else with such a key
		for i, a := range args[:max(len(args)-1, 0)] {
			if key := args[i+1].Text; len(key) == 1 && key > " " && key != "0" && shell.In(a.Text, "erase kill werase lnext eol eol2 eof intr quit susp swtch rprnt") {
				s.Add(detector.Opaque)
			}
		}
	default:
		return false
	}
	return true
}

// remote judges what a terminal or a window manager is told to start or to type: behind a
// verb such as run, spawn or send-text, or "--".
func (s mux) remote(args []shell.Field) {
	for i, a := range args {
		rest := args[i+1:]
		verb, behind, _ := strings.Cut(a.Code(), " ")
		if !s.Spend(len(rest)) || len(rest) == 0 && behind == "" {
			return
		}
		switch verb {
		case "--", "exec", "run", "r", "spawn", "launch", "split-pane", "new-pane", "start", "-e", "runCommand":
			if behind != "" { // i3-msg 'exec rm -rf /'
				s.MaybeRun(behind)
				continue
			}
			for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
				rest = rest[1:]
			}
			switch {
			case len(rest) == 1:
				s.MaybeRun(rest[0].Code())
			case len(rest) > 1:
				s.MaybeCommand(rest, shell.Stream{})
			}
		case "send-text", "send-key", "send-keys", "write-chars", "paste", "sendText", "send-string":
			var b []byte
			for _, text := range rest {
				if typed, ok := lineedit.AppendKey(b, text.Text); ok && strings.Contains(verb, "key") {
					b = typed
				} else {
					b = append(b, text.Code()...)
				}
			}
			for _, text := range rest {
				s.RunTyped(text.Code())
			}
			s.RunTyped(string(b))
			return
		case "write": // zellij action write 114 109
			s.RunTyped(string(bytesOf(rest, 10)))
		}
	}
}

// bytesOf returns the bytes that numbers stand for.
func bytesOf(numbers []shell.Field, base int) (b []byte) {
	for _, f := range numbers {
		if n, err := strconv.ParseUint(f.Text, base, 8); err == nil {
			b = append(b, byte(n))
		}
	}
	return b
}

// tmux judges what tmux ends and what it runs or types.
func (s mux) tmux(args []shell.Field, in shell.Stream) {
	rest := shell.AfterOptions(args, "cfLST", "")
	for i, a := range args {
		if a.Text == "-c" && i+1 < len(args) && len(args)-len(rest) > i {
			s.RunField(args[i+1], in)
		} else if a.Text == "-f" && i+1 < len(args) && len(args)-len(rest) > i {
			s.source(s.Open(args[i+1]))
		}
	}
	start := 0
	for i := 0; i <= len(rest); i++ {
		if i == len(rest) || rest[i].Text == ";" || strings.HasSuffix(rest[i].Text, ";") && i > start && strings.HasPrefix(rest[start].Text, "kill") {
			s.tmuxCommand(rest[start:i], in)
			start = i + 1
		}
	}
}

// tmuxName returns the full name of a command of tmux that is written as its alias, or that
// is shortened; the verb itself if it is none of those that matter.
func tmuxName(verb string) string {
	const names = "kill-server kill-session kill-window=killw kill-pane=killp respawn-pane=respawnp " +
		"respawn-window=respawnw send-keys=send set-buffer=setb load-buffer=loadb paste-buffer=pasteb " +
		"confirm-before=confirm command-prompt display-menu=menu choose-tree choose-buffer choose-client " +
		"set-environment=setenv run-shell=run if-shell=if new-session=new new-window=neww split-window=splitw " +
		"pipe-pane=pipep display-popup=popup set-option=set set-window-option=setw source-file=source set-hook bind-key=bind"
	for pair := range strings.FieldsSeq(names) {
		name, alias, _ := strings.Cut(pair, "=")
		// display is display-message
		if verb == alias || verb != "display" && len(verb) > 5 && strings.HasPrefix(name, verb) {
			return name
		}
	}
	return verb
}

func (s mux) tmuxCommand(f []shell.Field, in shell.Stream) {
	if len(f) == 0 || !s.Spend(len(f)) {
		return
	}
	verb, args := f[0].Text, f[1:]
	verb = tmuxName(verb)
	var cmd []shell.Field
	for _, a := range args {
		if a.Text == "--help" {
			return
		}
		if strings.Contains(a.Text, "#(") && verb != "send-keys" && verb != "set-buffer" {
			s.tmuxOption(a) // a format, as of names and titles
		}
	}
	switch verb {
	case "kill-server", "kill-session", "kill-window", "kill-pane":
		s.Add(detector.Kill)
		return
	case "respawn-pane", "respawn-window":
		if p := shell.ParseFlags(args, "cet", ""); p.Has("k") {
			s.Add(detector.Kill)
		}
		cmd = shell.AfterOptions(args, "cet", "")
	case "send-keys":
		s.tmuxKeys(args)
		return
	case "set-buffer":
		for _, text := range shell.AfterOptions(args, "bnt", "") {
			s.Write(shell.Field{Text: pasted}, shell.Stream{Kind: shell.Text, Text: text.Code(), From: text.From}, false)
		}
		return
	case "load-buffer":
		for _, file := range shell.AfterOptions(args, "bt", "") {
			if file.Text != "-" {
				in = s.Open(file)
			}
			s.Write(shell.Field{Text: pasted}, in, false)
		}
		return
	case "paste-buffer":
		s.RunTyped(s.Written(pasted))
		return
	case "confirm-before", "command-prompt", "display-menu", "choose-tree", "choose-buffer", "choose-client":
		for _, a := range args {
			s.tmuxWords(a)
		}
		return
	case "set-environment":
		if p := shell.AfterOptions(args, "t", ""); len(p) > 1 {
			s.Assigned(p[0].Text, p[1].Code())
		}
		return
	case "run-shell", "if-shell":
		cmd = shell.AfterOptions(args, "dt", "")
		for _, a := range cmd {
			s.RunField(a, shell.Stream{})
			if s.tmuxWords(a); strings.HasPrefix(a.Text, "#{@") || strings.HasPrefix(a.Text, "#{E:") {
				s.Add(detector.Opaque) // the command is an option
			}
		}
		return
	case "new-session":
		cmd = shell.AfterOptions(args, "ceFfnstxy", "")
	case "new-window":
		cmd = shell.AfterOptions(args, "ceFnt", "")
	case "split-window":
		cmd = shell.AfterOptions(args, "celFtp", "")
	case "pipe-pane", "display-popup":
		cmd = shell.AfterOptions(args, "tcdehsSTwxy", "")
	case "set-option", "set-window-option":
		if p := shell.AfterOptions(args, "t", ""); len(p) > 1 {
			s.tmuxOption(p[1])
			if p[0].Text == "default-shell" && !shell.In(shell.BaseName(p[1].Text), "sh bash zsh fish dash ksh mksh tcsh csh nu elvish xonsh pwsh") {
				s.Add(detector.Persistence) // each pane runs it
			}
		}
		return
	case "source-file":
		for _, a := range shell.AfterOptions(args, "t", "") {
			if a.Text != "-" {
				in = s.Open(a)
			}
			s.source(in)
		}
		return
	case "set-hook", "bind-key":
		cmd = shell.AfterOptions(args, "tTN", "")
		if len(cmd) > 1 {
			s.tmuxCommand(cmd[1:], in)
			s.tmuxWords(cmd[1])
		}
		return
	default:
		return
	}
	out := shell.Stream{}
	if verb == "pipe-pane" {
		out = shell.Anything // what the pane prints
	}
	if len(cmd) == 1 {
		s.RunField(cmd[0], out)
	} else if len(cmd) > 1 {
		s.Command(cmd, out)
	}
}

// tmuxOption judges the value of an option, which may be a command of a shell, or a
// format with #(command) in it.
func (s mux) tmuxOption(value shell.Field) {
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
func (s mux) tmuxWords(f shell.Field) {
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
	s.tmuxCommand(inner, shell.Stream{})
}

// source judges the commands of a file of tmux.
func (s mux) source(file shell.Stream) {
	s.Add(file.From & shell.Runnable)
	if file.Kind == shell.Text {
		for line := range strings.Lines(file.Text) {
			s.tmuxWords(shell.Field{Text: line})
		}
	}
}

// tmuxKeys judges the text that send-keys types, in which some words name keys.
func (s mux) tmuxKeys(args []shell.Field) {
	keys, flags := shell.AfterOptions(args, "tcN", ""), ""
	for _, a := range args[:len(args)-len(keys)] {
		if strings.HasPrefix(a.Text, "-") {
			flags += a.Text
		}
	}
	switch {
	case strings.Contains(flags, "H"):
		s.RunTyped(string(bytesOf(keys, 16)))
		return
	case strings.Contains(flags, "X"): // a command of its copy mode, as copy-pipe
		if len(keys) > 1 && strings.Contains(keys[0].Text, "pipe") {
			s.RunField(keys[1], shell.Stream{})
		}
		return
	}
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
func (s mux) types(args []shell.Field, short, long string) {
	for _, a := range shell.ParseFlags(args, short, long).Args {
		s.RunTyped(a.Code())
	}
}

func (s mux) screen(args []shell.Field, in shell.Stream) {
	for i, a := range args {
		if a.Text == "-X" {
			s.screenCommand(shell.AfterOptions(args[i+1:], "Sp", ""))
			return
		}
	}
	s.Command(shell.AfterOptions(args, "cehpsStT", ""), in)
}

// screenKeys returns a text as screen types it, which writes the end of a line as keys.
func screenKeys(text string) string {
	return strings.NewReplacer("^M", "\n", `\n`, "\n", `\r`, "\n", `\015`, "\n", `\012`, "\n").Replace(text)
}

func (s mux) screenCommand(cmd []shell.Field) {
	if len(cmd) == 0 {
		return
	}
	switch cmd[0].Text {
	case "quit", "kill":
		s.Add(detector.Kill)
	case "stuff":
		if len(cmd) > 1 {
			s.RunTyped(screenKeys(cmd[1].Code()))
		}
	case "register", "readbuf":
		if len(cmd) > 2 {
			s.Write(shell.Field{Text: pasted}, shell.Stream{Kind: shell.Text, Text: screenKeys(cmd[2].Code())}, false)
		}
	case "paste", "process":
		s.RunTyped(s.Written(pasted))
	case "eval":
		for _, a := range cmd[1:] {
			verb, rest, _ := strings.Cut(a.Code(), " ")
			if verb == "eval" {
				continue // screen refuses it
			}
			s.screenCommand([]shell.Field{{Text: verb}, {Text: shell.Unquote(strings.TrimSpace(rest))}})
		}
	case "exec", "screen":
		if rest := shell.AfterOptions(cmd[1:], "thT", ""); len(rest) > 0 {
			s.MaybeCommand(rest, shell.Stream{})
		}
	}
}
