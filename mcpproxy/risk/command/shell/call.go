package shell

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// Command judges one command and returns what it prints.
func (s *Shell) Command(f []Field, in Stream) Stream {
	if len(f) == 0 {
		return Stream{Kind: Empty}
	}
	if !s.Spend(commandCost+wordCost*len(f)+costOfLong(f)) || !s.Enter() {
		return Anything
	}
	defer s.Leave()
	if !s.filling {
		if filled := fill(f); filled != nil {
			s.filling = true
			s.Command(filled, in)
			s.filling = false
		}
	}
	s.lines(f, in)
	matters := s.alternatives(f, in)
	w := f[0]
	if w.assumed && !IsAssignment(w.Text) && !strings.HasPrefix(w.Text, "-") {
		s.Add(detector.Opaque)
	}
	name := BaseName(w.Text)
	if w.Unknown && strings.Contains(name, Hole) || name == "" && w.Unknown {
		if rest, ok := expression(f); ok {
			return s.Command(rest, in)
		}
		if w.others != nil && !matters {
			return Anything
		}
		if !(s.quiet && w.From&detector.More != 0) {
			s.Add(detector.Opaque | w.From&Runnable)
		}
		if w.Split && strings.Trim(w.Text, Hole) == "" {
			// The first word may be none.
			if rest := f[1:]; len(rest) > 0 && !rest[0].Unknown && trigger.Has(BaseName(rest[0].Text)) {
				s.Command(rest, in)
			}
		}
		return Anything
	}
	if name == "{}" { // what find or xargs puts in its place
		s.Add(detector.Opaque)
		return Anything
	}
	if !w.quoted && len(w.Text) > 1 && (w.Text[0] == '!' || w.Text[0] == '^' && len(w.Text) > 2) {
		s.Add(detector.Opaque) // a command of the history
		return Anything
	}
	if w.Glob {
		return s.globbed(name, f, in)
	}
	if !w.quoted && len(w.Text) > 1 && w.Text[0] == '=' {
		// zsh replaces =rm by the path of rm.
		g := append([]Field(nil), f...)
		g[0].Text = w.Text[1:]
		return s.Command(g, in)
	}
	if fn := s.functions[w.Text]; fn != nil {
		out := s.callFunction(fn, f[1:], in)
		s.judgeCommand(name, f, in)
		return out
	}
	if text, ok := s.aliases[w.Text]; ok {
		delete(s.aliases, w.Text) // an alias is not expanded in itself
		out := s.above.Run(text+" "+Quote(f[1:]), in)
		s.aliases[w.Text] = text
		if !w.quoted {
			return out
		}
	}
	if len(w.Text) > 1 && w.Text[0] == '-' && !w.quoted {
		// The options of time, where it is no keyword.
		return s.judgeCommand("time", append([]Field{{Text: "time"}}, f...), in)
	}
	if strings.Contains(w.Text, "/") {
		s.RunFile(w, f[1:], in, "")
	}
	return s.judgeCommand(name, f, in)
}

// expression reports whether a command whose first word is not known is one of
// PowerShell that no other shell has, $x = Get-Item y, $x.Name, $env:NAME or the head of a
// loop, $x in $y, and returns the command in it.
func expression(f []Field) (command []Field, ok bool) {
	member, isMember := strings.CutPrefix(f[0].Text, Hole)
	isMember = isMember && len(member) > 1 && (member[0] == '.' && 'A' <= member[1] && member[1] <= 'Z' || member[0] == ':' && member[1]|0x20 >= 'a') &&
		!strings.ContainsAny(member, "/("+Hole)
	switch {
	case member != "" && !isMember, len(f) == 1:
		return nil, isMember
	case member == "" && len(f) == 3 && f[1].Text == "in":
		return nil, true
	case !OneOf(f[1].Text, "=", "+="):
		return nil, false
	case len(f) > 2 && !f[2].Unknown && !f[2].quoted:
		return f[2:], true
	}
	return nil, true
}

// lines judges each line of a command word of several lines as the word: one of two
// commands printed it, as in p=$(which python3 || which python).
func (s *Shell) lines(f []Field, in Stream) {
	const most = 4
	var lines [][]Field
	rest := f[1:]
	switch w := f[0]; {
	case w.word != 0:
		end, from := 1, 0
		for ; end < len(f) && f[end].word == w.word; end++ {
			if f[end].line && len(lines) <= most {
				lines, from = append(lines, f[from:end]), end
			}
		}
		lines, rest = append(lines, f[from:end]), f[end:]
	case w.quoted && strings.IndexByte(w.Text, '\n') >= 0:
		for line := range strings.SplitSeq(w.Text, "\n") {
			if len(lines) > most {
				break
			}
			lines = append(lines, []Field{{Text: line, Unknown: w.Unknown, From: w.From}})
		}
	default:
		return
	}
	if len(lines) < 2 {
		return
	}
	if len(lines) > most {
		s.Add(detector.Opaque)
		return
	}
	for _, line := range lines {
		if !s.Spend(wordCost * len(f)) {
			return
		}
		cmd := append(append([]Field(nil), line...), rest...)
		cmd[0].word = 0
		s.Command(cmd, in)
	}
}

// fill returns the words as they are if what is not known in the middle of one
// is empty, as an unset variable is; nil if that changes nothing.
func fill(f []Field) []Field {
	var out []Field
	for i, w := range f {
		rest := strings.ReplaceAll(w.Text, Hole, "")
		// In git's branch:ref an empty branch would mean something else.
		if !w.Unknown || rest == "" || len(rest) == len(w.Text) || rest[0] == ':' || strings.ContainsAny(rest, "/ \n") {
			continue
		}
		if out == nil {
			out = append([]Field(nil), f...)
		}
		out[i].Text, out[i].Unknown, out[i].Split = rest, false, false
	}
	return out
}

// alternatives judges a command for each text that its words may be, and reports whether one
// of them matters.
func (s *Shell) alternatives(f []Field, in Stream) bool {
	const most = 8
	all, could := 1, f[0].others != nil
	for _, w := range f {
		all = min(all*max(len(w.others), 1), most)
	}
	for i := 0; i < len(f) && all > 1 && !could; i++ {
		could = trigger.Scan(f[i].Text) != 0
		for _, text := range f[i].others {
			could = could || trigger.Scan(text) != 0
		}
	}
	if all == 1 || !could {
		return false
	}
	found := s.found
	s.found = 0
	for n := range all {
		var g []Field
		for _, w := range f {
			if w.others == nil {
				g = append(g, w)
				continue
			}
			text := w.others[n%len(w.others)]
			if n /= len(w.others); w.quoted {
				g = append(g, Field{Text: text, Unknown: strings.Contains(text, Hole), quoted: true, From: w.From})
				continue
			}
			for word := range strings.FieldsSeq(text) {
				unknown := strings.Contains(word, Hole)
				g = append(g, Field{Text: word, Unknown: unknown, Split: unknown, Glob: strings.ContainsAny(word, "*?["), From: w.From})
			}
		}
		s.MaybeCommand(g, in)
	}
	matters := s.found != 0
	s.found |= found
	return matters
}

// MaybeCommand judges a command that may not run.
func (s *Shell) MaybeCommand(f []Field, in Stream) {
	s.maybe(func() Stream { return s.Command(f, in) })
}

// globbed judges a command word with wildcards: what it matches is not known, so
// it is Opaque if it could be a command that matters.
func (s *Shell) globbed(name string, f []Field, in Stream) Stream {
	const longest = 64 // bytes; matching a longer pattern takes time that the agent chooses
	if len(name) > longest {
		s.Add(detector.Opaque)
		return Anything
	}
	pattern := strings.ReplaceAll(name, Hole, "*")
	least := trigger.Shortest(pattern)
	for _, cmd := range [...]string{
		"rm", "rmdir", "unlink", "shred", "dd", "git", "sh", "bash", "dash", "zsh", "ksh", "busybox", "find", "truncate",
		"kill", "pkill", "killall", "chmod", "chown", "reboot", "shutdown", "halt", "poweroff", "mkfs", "mkfs.ext4", "wipefs",
		"sudo", "env", "xargs", "python3", "python", "perl", "ruby", "node", "curl", "wget", "nc", "cat", "tee", "cp", "mv",
		"psql", "mysql", "sqlite3", "docker", "kubectl", "terraform", "tmux", "crontab", "ssh", "base64", "eval", "aws",
	} {
		if len(cmd) < least {
			continue
		}
		if !s.Spend(globCost) {
			break
		}
		if ok, _ := path.Match(pattern, cmd); ok {
			s.Add(detector.Opaque)
			if !s.Spend(wordCost * len(f)) {
				break
			}
			g := append([]Field{{Text: cmd}}, f[1:]...)
			s.judgeCommand(cmd, g, in)
		}
	}
	return Anything
}

func (s *Shell) callFunction(f *function, args []Field, in Stream) Stream {
	if f.active || s.depth >= maxDepth {
		return Anything
	}
	f.active, f.called = true, true
	s.depth++
	params, has, outer := s.params, s.hasParams, s.locals
	s.locals = map[string]*variable{}
	if !s.quiet {
		s.params, s.hasParams = args, true
	}
	out := s.above.statements(f.body, in)
	for name, v := range s.locals {
		if v == nil {
			delete(s.vars, name)
		} else {
			s.bind(name, *v)
		}
	}
	s.params, s.hasParams, s.locals = params, has, outer
	s.depth--
	f.active = false
	return out
}

// judgeCommand applies the rule of one command by its name and returns what it prints.
func (s *Shell) judgeCommand(name string, f []Field, in Stream) Stream {
	if out, ok := s.builtin(name, f, in); ok {
		return out
	}
	return s.programs.Call(s, name, f, in)
}
