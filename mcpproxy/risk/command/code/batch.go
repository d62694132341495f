package code

import (
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// batch returns the commands of a line of cmd with the values of the variables that it sets,
// and without the words in front of a command that change nothing about it.
func batch(s *shell.Shell, text string) string {
	var vars map[string]string
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexAny(text, "&|\n")
		if quote := strings.IndexByte(text[:max(end, 0)], '"'); quote >= 0 {
			if n := strings.IndexByte(text[quote+1:], '"'); n >= 0 {
				if quote += 1 + n; !strings.ContainsAny(text[quote:], "&|\n") {
					end = -1
				} else {
					end = quote + strings.IndexAny(text[quote:], "&|\n")
				}
			}
		}
		command, separator := text, ""
		if end >= 0 {
			command, separator = text[:end], text[end:end+1]
		}
		text = text[len(command)+len(separator):]
		if len(vars) > 0 {
			command = withValues(command, vars)
		}
		if !s.Spend(len(command)) || b.Len() > shell.MaxValue {
			s.Add(detector.Opaque)
			break
		}
		bare := strings.TrimLeft(command, "@( ")
		for {
			word, rest, ok := strings.Cut(bare, " ")
			if !ok || !shell.OneOf(strings.ToLower(word), "call", "start", "/b", "/wait", "/min", "/i") {
				break
			}
			bare = strings.TrimLeft(rest, "@( ")
		}
		if word, rest, ok := strings.Cut(bare, " "); ok && strings.EqualFold(word, "set") {
			name, value, _ := strings.Cut(strings.Trim(rest, `" `), "=")
			if vars == nil {
				vars = map[string]string{}
			}
			vars[strings.ToLower(name)] = value
		}
		if bare != strings.TrimLeft(command, " ") {
			bare = strings.TrimRight(bare, ") ")
		}
		b.WriteString(bare + separator)
	}
	return b.String()
}

// withValues returns the text with values in the place of %name% and !name!, of which a
// number of characters or another text in the place of one may be wanted.
func withValues(text string, vars map[string]string) string {
	var b strings.Builder
	for len(text) > 0 && b.Len() <= shell.MaxValue {
		at := strings.IndexAny(text, "%!")
		if at < 0 {
			break
		}
		b.WriteString(text[:at])
		mark := text[at : at+1]
		inner, rest, ok := strings.Cut(text[at+1:], mark)
		name, form, _ := strings.Cut(inner, ":")
		value, known := vars[strings.ToLower(name)]
		if !ok || !known {
			b.WriteString(mark)
			text = text[at+1:]
			continue
		}
		if old, replacement, ok := strings.Cut(form, "="); ok && old != "" {
			value = strings.ReplaceAll(value, old, replacement)
		} else if part, ok := strings.CutPrefix(form, "~"); ok {
			value = piece(value, part)
		}
		b.WriteString(value)
		text = rest
	}
	return b.String() + text
}

// piece returns the characters of a value from a number on, and as many as another says.
// Numbers below zero count from the end.
func piece(value, part string) string {
	first, second, has := strings.Cut(part, ",")
	from, _ := strconv.Atoi(first)
	if from < 0 {
		from += len(value)
	}
	from = min(max(from, 0), len(value))
	to := len(value)
	if n, err := strconv.Atoi(second); has && err == nil {
		if to = from + n; n < 0 {
			to = len(value) + n
		}
	}
	return value[from:min(max(to, from), len(value))]
}
