package main

import (
	"fmt"
	"io"
	"strings"
)

// A screen is where the demo talks to its user.
type screen struct {
	w     io.Writer
	color bool
}

const (
	bold  = "\x1b[1;36m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	faint = "\x1b[2m"
	plain = "\x1b[0m"
)

func (s *screen) styled(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + plain
}

func (s *screen) heading(text string) {
	fmt.Fprintf(s.w, "\n%s\n", s.styled(bold, "== "+text+" =="))
}

func (s *screen) text(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// command shows a command as one would type it.
func (s *screen) command(name string, args ...string) {
	line := "$ " + name
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "'"):
			arg = `"` + arg + `"`
		case strings.ContainsAny(arg, " *("):
			arg = "'" + arg + "'"
		}
		line += " " + arg
	}
	fmt.Fprintln(s.w, s.styled(faint, line))
}

// mark shows the result of a check.
func (s *screen) mark(good bool, format string, args ...any) {
	sign := s.styled(green, "ok  ")
	if !good {
		sign = s.styled(red, "BAD ")
	}
	fmt.Fprintf(s.w, "%s%s\n", sign, fmt.Sprintf(format, args...))
}
