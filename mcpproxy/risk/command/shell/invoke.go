package shell

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/risk/environment"
)

// Assigned judges an assignment that a later command runs.
func (s *Shell) Assigned(name, value string) {
	switch {
	case OneOf(name, "PS0", "PS1", "PS2", "PS4"):
		s.MaybeRun(`: "` + value + `"`)
	case OneOf(name, "precmd", "VISUAL", "FCEDIT", "GIT_EXTERNAL_DIFF", "LESSOPEN", "LESSCLOSE", "BROWSER"),
		strings.HasSuffix(name, "_COMMAND"), strings.HasSuffix(name, "EDITOR"), strings.HasSuffix(name, "PAGER"), strings.HasSuffix(name, "_RSH"), strings.HasSuffix(name, "_WRAPPER"), strings.HasSuffix(name, "ASKPASS"),
		strings.HasPrefix(name, "GIT_CONFIG_VALUE_"):
		if s.MaybeRun(strings.TrimLeft(value, "|!")); (strings.HasSuffix(name, "EDITOR") || name == "VISUAL") && !strings.HasPrefix(value, Hole) {
			s.MaybeRun(value + " ${_}") // a file is added
		}
	case name == "TAR_OPTIONS":
		s.MaybeRun("tar " + value)
	case name == "MAKEFLAGS":
		s.MaybeRun("make " + Quote([]Field{{Text: value}}))
	case name == "GIT_CONFIG_PARAMETERS":
		_, command, _ := strings.Cut(value, "=!")
		s.MaybeRun(strings.TrimRight(command, "'"))
	default:
		if environment.LoadsCode(name, value) {
			s.Add(detector.EnvironmentName)
		}
		if environment.HidesHistory(name, value) {
			s.Add(detector.ProtectionOff)
		}
	}
}

// MaybeRun runs a text that may never run.
func (s *Shell) MaybeRun(text string) {
	if text == "" || trigger.Scan(text) == 0 {
		return
	}
	s.inSubshell(false, func() Stream { return s.above.Run(text, Stream{}) })
}

// Feed runs what an interpreter reads. Language is empty for a shell.
func (s *Shell) Feed(in Stream, language string) {
	switch in.Kind {
	case Text:
		s.Add(in.From & Runnable)
		if language == "" {
			s.inSubshell(false, func() Stream { return s.above.Run(in.Text, Stream{}) })
			if in.alt != "" {
				s.inSubshell(false, func() Stream { return s.above.Run(in.alt, Stream{}) })
			}
		} else {
			s.programs.Code(s, language, in.Text)
		}
	case File:
		s.Add(in.From & Runnable)
		s.runPath(in.Text, language)
	case Unknown:
		s.Add(detector.Opaque | in.From&Runnable)
	}
}

// RunFile runs a file that the text wrote or downloaded itself. What is in
// another file is not judged.
func (s *Shell) RunFile(f Field, args []Field, in Stream, language string) {
	switch {
	case f.Reads != nil:
		if f.Reads.Kind == Unknown && f.Reads.From&(Generated|Runnable) == Generated {
			return
		}
		s.withParams(args, func() { s.Feed(*f.Reads, language) })
	case OneOf(f.Text, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
		s.withParams(args, func() { s.Feed(in, language) })
	case strings.HasPrefix(f.Text, "/dev/fd/"), strings.HasPrefix(f.Text, "/proc/self/fd/"):
		s.Add(detector.Opaque)
	case !f.Unknown:
		s.withParams(args, func() { s.runPath(f.Text, language) })
	}
}

func (s *Shell) runPath(name, language string) {
	name = path.Clean(name)
	file, ok := s.file(name)
	if !ok || file.Kind != Text && file.From&Runnable == 0 {
		return
	}
	// A script may run itself; its text is taken away so that it ends.
	_, written := s.files[name]
	delete(s.files, name)
	s.Feed(file, language)
	if written {
		s.files[name] = file
	}
}

func (s *Shell) withParams(args []Field, f func()) {
	params, has := s.params, s.hasParams
	s.params, s.hasParams = args, true
	f()
	s.params, s.hasParams = params, has
}

// RunField runs a word as the text of a shell.
func (s *Shell) RunField(f Field, in Stream) Stream {
	if f.From&Runnable != 0 {
		s.Add(detector.Opaque | f.From&Runnable)
	}
	if f.Text == Hole && f.From&Generated != 0 && f.From&Runnable == 0 {
		return Anything
	}
	return s.above.Run(f.Code(), in)
}
