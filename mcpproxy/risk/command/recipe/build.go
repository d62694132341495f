package recipe

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Build judges what make, just and their like run: recipes of a file that the text
// wrote, and what options and variables say.
func Build(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	for i, a := range args {
		if name == "just" && shell.OneOf(a.Text, "-c", "--command") {
			s.Command(args[i+1:], in)
			return
		}
	}
	p := shell.ParseFlags(args, "fCjoWIl", "file directory makefile eval justfile")
	if text, ok := p.Value("eval"); ok {
		target(s, text.Text, "", 0)
		if strings.Contains(text.Text, "$(shell") {
			s.MaybeRun(shell.Unquote(text.Text[strings.IndexAny(text.Text, "\t ")+1:]))
		}
	}
	text := ""
	if file, ok := p.Value("f", "file", "makefile", "justfile"); !ok {
		dir, _ := p.Value("C", "directory")
		for name := range strings.FieldsSeq("GNUmakefile makefile Makefile justfile Justfile .justfile") {
			text += s.Written(path.Join(dir.Text, name))
		}
	} else {
		if !shell.OneOf(file.Text, "-", "/dev/stdin") {
			in = s.Open(file)
		}
		if in.Kind == shell.Text {
			text = in.Text
		}
	}
	if len(p.Args) == 0 {
		target(s, text, "", 0)
	}
	for _, a := range p.Args {
		target(s, text, a.Text, 0)
		// A variable of make or just is a command that a recipe runs, or its flags.
		if variable, value, ok := strings.Cut(a.Code(), "="); ok && variable == ".SHELLFLAGS" {
			s.MaybeRun("sh " + value)
		} else if ok && IsCommand(value) {
			s.MaybeRun(value)
		}
		if name != "make" && name != "ninja" && name != "gmake" && strings.HasPrefix(a.Text, "db:") &&
			shell.OneOf(a.Text, "db:drop", "db:reset", "db:drop:all", "db:migrate:reset", "db:truncate_all", "db:purge", "db:schema:load") {
			s.Add(detector.SQLUnfiltered)
		}
	}
	if name == "rails" && shell.OneOf(p.Arg(0), "runner", "r") && len(p.Args) > 1 {
		s.Feed(shell.Stream{Kind: shell.Text, Text: p.Args[1].Code()}, "ruby")
		if strings.Contains(p.Arg(1), "delete_all") || strings.Contains(p.Arg(1), "destroy_all") {
			s.Add(detector.SQLUnfiltered)
		}
	}
}

// target runs the recipe of a target of make or just, of the first one if it has no
// name, and of those that it needs.
func target(s *shell.Shell, text, name string, depth int) {
	const deepest = 8
	if text == "" || depth == deepest || !s.Spend(len(text)) {
		return
	}
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			head, needs, ok := strings.Cut(line, ":")
			inside = ok && !strings.HasPrefix(needs, "=") && (name == "" && !strings.HasPrefix(line, ".") || name != "" && shell.In(name, head))
			if !inside {
				continue
			}
			if name == "" {
				name, _, _ = strings.Cut(head, " ")
			}
			needs, line, _ = strings.Cut(needs, ";")
			for other := range strings.FieldsSeq(needs) {
				target(s, text, other, depth+1)
			}
		}
		if inside {
			s.MaybeRun(strings.TrimLeft(line, " \t@-+"))
		}
	}
}

// Scripts runs the scripts of npm, yarn, pnpm or composer that the text wrote into the
// file of a package.
func Scripts(s *shell.Shell, args []shell.Field) {
	text := s.Written("package.json") + s.Written("composer.json")
	if text == "" || !s.Spend(len(text)*(len(args)+4)) {
		return
	}
	names := "preinstall install postinstall prepare " + shell.Join(args)
	for name := range strings.FieldsSeq(names) {
		_, behind, _ := strings.Cut(text, `"`+name+`"`)
		if behind, ok := strings.CutPrefix(strings.TrimSpace(behind), ":"); ok {
			behind, _, _ = strings.Cut(strings.TrimLeft(strings.ReplaceAll(behind, `\"`, "'"), ` "`), `"`)
			s.MaybeRun(behind)
		}
	}
}
