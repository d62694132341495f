// Package probe finds what a condition of a policy compares otherwise than its writer
// may mean: texts that a pattern matches too, or that a rule does not deny. It is pure.
//
// The files, from the top: probe, denied, sample.
package probe

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"auditproxy/internal/lazyregexp"
)

// other is a host or a name that the author of a pattern did not mean to allow.
const other = "x.example"

// Required returns texts that a pattern, which the argument of that name has to match,
// matches too: paths out of the directory with which it begins, hosts beside those that it
// names, or a second command.
func Required(argument, pattern string) (found []Text) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	match := regexp.MustCompile(pattern).MatchString
	alternatives := []*syntax.Regexp{re}
	if re.Op == syntax.OpAlternate {
		alternatives, pattern = re.Sub, ""
	}
	for _, re := range alternatives {
		alternative(argument, pattern, re, match, &found)
	}
	return found
}

// Contained is Required for a text that an argument has to contain.
func Contained(argument, text string) (found []Text) {
	for _, t := range Required(argument, regexp.QuoteMeta(text)) {
		found = append(found, Text{t.Value, "use op regex, from ^ to $", ""})
	}
	return found
}

// alternative looks at one of the alternatives of a pattern.
func alternative(argument, pattern string, re *syntax.Regexp, match func(string) bool, found *[]Text) {
	add := func(value, remedy, detector string) bool {
		if !match(value) {
			return false
		}
		*found = append(*found, Text{value, remedy, detector})
		return true
	}
	s := sampler{any: '.'}
	sample := s.of(re)
	if s.lines {
		_ = add(sample+"\n"+other, "leave out (?m)", "") || add(other+"\n"+sample, "leave out (?m)", "")
	}
	isPath := isPathName.MatchString(argument) && sample != ""
	switch {
	case match("/tmp/x"): // it names no directory
	case isCommand(argument) && match(sample) && sample != "":
		more := []string{"; rm x", "\nrm x", " $(rm x)"}
		if isStatement.MatchString(argument) {
			more = []string{"; drop table x"}
		}
		for _, next := range more {
			if add(sample+next, "end it with $, and leave out what joins commands", "") {
				break
			}
		}
	case strings.HasPrefix(sample, "/"), strings.HasPrefix(sample, "~/"), isPath && strings.ContainsAny(sample, `/\`) && !strings.Contains(sample, "://"):
		if sample[0] == '/' && add("/tmp"+sample, "begin it with ^", "") {
			break
		}
		out := outOf(pattern)
		if out == "" || !add(out, traversal, pathTraversal) {
			_ = add(strings.TrimRight(sample, "/")+"/../../x", traversal, pathTraversal) || strings.Contains(sample, `\`) && add(sample+`\..\..\x`, traversal, pathTraversal)
		}
		if s.plain && strings.HasPrefix(sample, "/") && !strings.HasSuffix(sample, "/") {
			add(sample+"-x/y", "end the directory with /", "")
		}
	case strings.Contains(sample, "://"):
		if add("ftp://"+other+"/?"+sample, "begin it with ^", "") {
			break
		}
		required(re, sample, match, found)
	case strings.HasPrefix(sample, "@"):
		add("x@"+other+", y"+sample, "begin it with ^[^@]+", "")
	case isHost.MatchString(sample) && s.dotted && !isPath:
		_ = add(sample+"."+other, "end it with $", "") || add("x"+sample, `begin it with ^, or with (^|\.) for all below it`, "")
	}
}

// required looks for hosts that the pattern of a URL matches beside those that it names.
func required(re *syntax.Regexp, sample string, match func(string) bool, found *[]Text) {
	authority := strings.Index(sample, "://") + 3
	if !strings.ContainsAny(sample[authority:], "/?#") && authority < len(sample) && sample[len(sample)-1] != ':' {
		for _, end := range [...]string{"." + other + "/", "@" + other + "/"} {
			if match(sample + end) {
				*found = append(*found, Text{sample + end, "end the host with /", ""})
				return
			}
		}
	}
	for _, end := range [...]string{"/", "?", "#"} {
		s := sampler{any: '.', many: other + end}
		if value := s.of(re); match(value) && hostOf(value) == other {
			*found = append(*found, Text{value, "write [a-z0-9.-]* for a part of the host", ""})
			return
		}
	}
	s := sampler{any: 'x'}
	if value := s.of(re); s.dots && match(value) && hostOf(value) != hostOf(sample) {
		*found = append(*found, Text{value, `write \. for a dot`, ""})
	}
}

// hostOf returns the host of a URL as most clients read it.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host, _, _ := strings.Cut(rest, ":")
	return host
}

const (
	pathTraversal = "path_traversal"
	traversal     = `exclude "..", or put path_traversal into deny_detections`
)

var isPathName = lazyregexp.New(`(?i)(?:path|file|filename|dir|directory|folder|output|dest|destination|target|cwd)s?$`)

var isHost = lazyregexp.New(`^\.?[a-z0-9-]+(?:\.[a-z0-9-]+)+$`)

// The plain text at the beginning of a pattern for a path, and at its end.
var (
	startsWith = lazyregexp.New(`^(?:\(\?i\))?\^(/(?:[^\\.+*?()|\[\]{}^$]|\\[.\-_/ ])*)([*?{]?)`)
	endsWith   = lazyregexp.New(`((?:[^\\.+*?()|\[\]{}^$]|\\[.\-_/ ])*)\$$`)
)

// outOf returns a path that leads out of the directory with which a pattern begins,
// and otherwise looks like what it matches; "" if it begins with none.
func outOf(pattern string) string {
	begin := startsWith.FindStringSubmatch(pattern)
	if begin == nil {
		return ""
	}
	dir := strings.ReplaceAll(begin[1], `\`, "")
	if begin[2] != "" {
		dir = dir[:len(dir)-1] // the last character may not be there
	}
	if dir = strings.TrimRight(dir, "/"); dir == "" {
		return ""
	}
	out := dir + "/../x"
	if end := endsWith.FindStringSubmatch(pattern); end != nil {
		out += strings.ReplaceAll(end[1], `\`, "")
	}
	return out
}
