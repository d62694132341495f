package shell

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell/expand"
	"auditproxy/mcpproxy/risk/detector"
)

// builtin runs a command that the shell has itself, or another shell, false if
// name is neither.
func (s *Shell) builtin(name string, f []Field, in Stream) (Stream, bool) {
	args := f[1:]
	out := Stream{Kind: Unknown, From: in.From}
	switch name {
	case ":", "true", "false", "wait":
		return Stream{Kind: Empty}, true
	case "echo":
		return echo(args), true
	case "printf":
		return s.printf(args), true
	case "which", "command", "type":
		return s.lookUp(name, args, in), true
	case "pwd":
		return textOf("."), true
	case "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "fish", "rbash", "yash", "tcsh", "csh", "pdksh", "posh", "bosh", "oksh":
		return s.runShell(f, in), true
	case "eval":
		text := Join(args)
		var from detector.Set
		for _, a := range args {
			from |= a.From
		}
		whole := Field{Text: text, From: from}
		if len(args) == 1 {
			whole = args[0]
		}
		return s.RunField(whole, in), true
	case "source", ".":
		switch {
		case len(args) > 0 && args[0].Text != "-":
			s.RunFile(args[0], args[1:], in, "")
		case in.From&Generated == 0 || in.From&Runnable != 0: // fish reads the input
			s.Feed(in, "")
		}
	case "trap":
		if len(args) > 1 {
			s.maybe(func() Stream { return s.RunField(args[0], Stream{}) })
		}
	case "alias":
		for _, a := range args {
			if name, text, ok := strings.Cut(a.Code(), "="); ok {
				if s.aliases == nil {
					s.aliases = map[string]string{}
				}
				s.aliases[name] = text
				s.MaybeRun(text)
				if verb, _, _ := strings.Cut(text, " "); verb != name { // alias rm='rm -i' hides nothing
					opaque := s.found & detector.Opaque
					s.MaybeRun(text + " ${_}")
					s.found = s.found&^detector.Opaque | opaque
				}
			}
		}
		return Stream{Kind: Empty}, true
	case "cd", "pushd":
		s.enter(args)
		return Stream{}, false
	case "set":
		s.setParams(args)
		return Stream{Kind: Empty}, true
	case "shift":
		if s.hasParams && len(s.params) > 0 && len(args) == 0 {
			s.params = s.params[1:]
		} else {
			s.params, s.hasParams = nil, false
		}
	case "read", "mapfile", "readarray":
		s.read(name, args, in)
	case "unset":
		for _, a := range args {
			delete(s.vars, a.Text)
			if a.Text == "HISTFILE" {
				s.Add(detector.ProtectionOff)
			}
		}
	case "export", "declare", "typeset", "local", "readonly":
		for _, a := range args {
			if name, value, ok := strings.Cut(a.Text, "="); ok {
				s.local(f[0].Text, name)
				s.set(name, variable{values: []string{value}, known: !a.Unknown, assumed: a.assumed, from: a.From}, false)
				s.Assigned(name, a.Code()[strings.IndexByte(a.Code(), '=')+1:])
			}
		}
		return Stream{Kind: Empty}, true
	default:
		return Stream{}, false
	}
	return out, true
}

func (s *Shell) setParams(args []Field) {
	for len(args) > 0 {
		a := args[0].Text
		if a == "--" {
			s.params, s.hasParams = append([]Field(nil), args[1:]...), true
			return
		}
		if a == "-o" || a == "+o" {
			if a == "+o" && len(args) > 1 && args[1].Text == "history" {
				s.Add(detector.ProtectionOff)
			}
			args = args[min(2, len(args)):]
			continue
		}
		if len(a) > 1 && (a[0] == '-' || a[0] == '+') {
			args = args[1:]
			continue
		}
		s.params, s.hasParams = append([]Field(nil), args...), true
		return
	}
}

// read assigns what is read from a known text; otherwise the names are unknown.
func (s *Shell) read(name string, args []Field, in Stream) {
	if in.Kind == File {
		in.From |= Local
	}
	p := ParseFlags(args, "adinNptu", "")
	if name != "read" {
		for _, a := range p.Args {
			s.bind(a.Text, variable{from: in.From})
		}
		return
	}
	line, ok := "", in.Kind == Text
	if ok {
		end, hasEnd := p.Value("d")
		if line = in.Text; !hasEnd {
			end.Text = "\n"
		}
		if end.Text != "" {
			line, _, _ = strings.Cut(line, end.Text[:1])
		}
	}
	names := p.Args
	if array, isArray := p.Value("a"); isArray {
		s.bind(array.Text, variable{values: strings.Fields(line), known: ok, from: in.From})
		return
	}
	if len(names) == 0 {
		names = []Field{{Text: "REPLY"}}
	}
	words := strings.Fields(line)
	for i, n := range names {
		v := variable{known: ok, from: in.From, values: []string{""}}
		switch {
		case i == 0 && len(names) == 1:
			v.values[0] = strings.TrimSpace(line)
		case i == len(names)-1 && i < len(words):
			v.values[0] = strings.Join(words[i:], " ")
		case i < len(words):
			v.values[0] = words[i]
		}
		if ok && s.loops > 0 {
			v.known, v.values = false, nil // a later turn reads another line
		}
		s.bind(n.Text, v)
	}
}

// echo returns what echo prints.
func echo(args []Field) Stream {
	newline, escapes := true, false
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' && strings.Trim(args[0].Text[1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0].Text, "n")
		escapes = escapes || strings.Contains(args[0].Text, "e")
		args = args[1:]
	}
	var from detector.Set
	empty, whole := true, true
	for _, a := range args {
		from |= a.From
		empty = empty && a.Text == ""
		whole = whole && !a.Unknown
	}
	if empty {
		return Stream{Kind: Empty, From: from}
	}
	if !whole && from&Runnable != 0 {
		return Stream{Kind: Unknown, From: from}
	}
	text := Join(args)
	out := Stream{Kind: Text, Text: text, From: from}
	if strings.Contains(text, `\`) {
		if out.alt = string(expand.AppendANSI(nil, text)); escapes {
			out.Text = out.alt
		}
	}
	if newline {
		out.Text += "\n"
	}
	return out
}

// printf returns what printf prints.
func (s *Shell) printf(args []Field) Stream {
	if len(args) > 1 && args[0].Text == "-v" {
		out := s.printf(args[2:])
		s.bind(args[1].Text, variable{values: []string{out.Text}, known: out.Kind == Text, from: out.From})
		return Stream{Kind: Empty}
	}
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return Stream{Kind: Empty}
	}
	var from detector.Set
	for _, a := range args {
		from |= a.From
		if a.Unknown && from&Runnable != 0 {
			return Stream{Kind: Unknown, From: from}
		}
	}
	format, rest := args[0].Code(), args[1:]
	var b []byte
	for turn := 0; turn == 0 || len(rest) > 0 && turn < maxExpanded && len(b) < MaxValue; turn++ {
		used := false
		start := 0
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				continue
			}
			b = expand.AppendANSI(b, format[start:i])
			i++
			for i < len(format)-1 && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
				i++
			}
			arg := ""
			if format[i] != '%' && len(rest) > 0 {
				arg, rest = rest[0].Code(), rest[1:]
				used = true
			}
			switch format[i] {
			case '%':
				b = append(b, '%')
			case 'b':
				b = expand.AppendANSI(b, arg)
			case 'c':
				b = append(b, arg[:min(1, len(arg))]...)
			case 's', 'd', 'i', 'u':
				b = append(b, arg...)
			case 'q':
				b = append(b, Quote([]Field{{Text: arg}})...)
			default:
				return Stream{Kind: Unknown, From: from}
			}
			start = i + 1
		}
		b = expand.AppendANSI(b, format[start:])
		if !used {
			break
		}
	}
	out := textOf(string(b))
	out.From = from
	return out
}

// lookUp judges which, type and command; the latter also runs.
func (s *Shell) lookUp(name string, args []Field, in Stream) Stream {
	if name == "command" {
		if len(args) == 0 || !strings.HasPrefix(args[0].Text, "-") || OneOf(args[0].Text, "-p", "--") {
			for len(args) > 0 && OneOf(args[0].Text, "-p", "--") {
				args = args[1:]
			}
			return s.above.Command(args, in)
		}
		args = args[1:]
	}
	if name != "type" && len(args) > 0 && !args[len(args)-1].Unknown && !strings.HasPrefix(args[len(args)-1].Text, "-") {
		return textOf(args[len(args)-1].Text + "\n")
	}
	return Anything
}

// runShell judges sh, bash and others.
func (s *Shell) runShell(f []Field, in Stream) Stream {
	args := f[1:]
	code, stdin, noexec, interactive := false, false, false, false
	for len(args) > 0 {
		a := args[0]
		if len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+' || a.Reads != nil {
			break
		}
		args = args[1:]
		if a.Text == "--" {
			break
		}
		if strings.HasPrefix(a.Text, "--") {
			switch a.Text {
			case "--help", "--version":
				return Anything
			case "--rcfile", "--init-file", "--init-command", "--command":
				if len(args) > 0 {
					if strings.HasSuffix(a.Text, "command") {
						s.RunField(args[0], in)
					} else {
						s.RunFile(args[0], nil, in, "")
					}
					args = args[1:]
				}
			default:
				if text, ok := strings.CutPrefix(a.Text, "--command="); ok {
					a.Text = text
					s.RunField(a, in)
				}
			}
			continue
		}
		for j := 1; j < len(a.Text); j++ {
			switch a.Text[j] {
			case 'c':
				code = code || a.Text[0] == '-'
			case 's':
				stdin = true
			case 'n':
				noexec = noexec || a.Text[0] == '-'
			case 'i':
				interactive = true
			case 'o', 'O':
				if len(args) > 0 {
					noexec = noexec || a.Text[0] == '-' && args[0].Text == "noexec"
					args = args[1:]
				}
			}
		}
	}
	if noexec && !interactive {
		return Anything
	}
	if len(args) > 0 && args[0].Text == "-" {
		if args = args[1:]; !code {
			stdin = stdin || len(args) == 0
		}
	}
	switch {
	case code && len(args) > 0:
		var out Stream
		params, zero := args[1:], s.zero
		if len(params) > 0 {
			s.zero, params = params[0].Text, params[1:]
		}
		defer func() { s.zero = zero }()
		s.inSubshell(false, func() Stream {
			s.withParams(params, func() { out = s.RunField(args[0], in) })
			return out
		})
		return out
	case code:
		return Anything
	case stdin || len(args) == 0:
		if s.Root && in.Kind == None {
			s.Add(detector.PrivilegeEscalation) // what is typed next has all rights
		}
		s.withParams(args, func() { s.Feed(in, "") })
	default:
		s.inSubshell(false, func() Stream {
			s.RunFile(args[0], args[1:], in, "")
			return Anything
		})
	}
	return Anything
}
