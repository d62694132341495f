package probe

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"auditproxy/internal/lazyregexp"
)

// A Text is one that a condition compares otherwise than expected.
type Text struct {
	Value  string
	Remedy string
	// Detector finds such texts in arguments: a policy that denies by it, or asks, needs no remedy.
	Detector string
}

// Denied returns texts that mean what a condition denies, or what it looks like, and that it
// may not hold for: the caller looks. The value is a pattern, or is compared as it is.
func Denied(argument, value string, isPattern bool) (found []Text) {
	sample, plain := value, true
	if isPattern {
		re, err := syntax.Parse(value, syntax.Perl)
		if err != nil {
			return nil
		}
		s := sampler{any: 'a'}
		sample = s.of(re)
		plain = s.plain
		if s.spans {
			broken := sampler{any: 'a', many: "\n"}
			if text := broken.of(re); strings.Contains(text, "\n") {
				found = append(found, Text{text, "write (?s) in front: . matches no line break", ""})
			}
		}
	}
	if capitals.MatchString(sample) {
		remedy := "write (?i) in front"
		if !isPattern {
			remedy = "use op regex with (?i) in front"
		}
		found = append(found, Text{strings.ToLower(sample), remedy, ""})
	}
	switch {
	case isStatement.MatchString(argument):
		if m := words.FindStringSubmatch(sample); m != nil {
			found = append(found, Text{m[1] + "/**/" + m[2], "a comment is a space in SQL: put what it does, such as sql_unfiltered, into deny_detections", "sql_unfiltered"})
		}
	case isCommand(argument) && isWord.MatchString(sample):
		found = append(found, Text{sample[:1] + `\` + sample[1:], "a shell has many spellings: put what it does, such as recursive_delete, and opaque into deny_detections", "opaque"})
	}
	if plain && isPath.MatchString(sample) {
		at := strings.LastIndexByte(strings.TrimRight(sample, "/"), '/')
		remedy, word := "add the path to auditproxy.paths.sensitive, and path_sensitive to deny_detections", "path_sensitive"
		if isBlocked.MatchString(sample) {
			remedy, word = "put path_blocked into deny_detections", "path_blocked"
		}
		for _, between := range [...]string{"/", "/."} {
			found = append(found, Text{sample[:at] + between + sample[at:], remedy, word})
		}
	}
	if m := isAddress.FindStringSubmatch(sample); m != nil {
		address := m[0]
		n := uint64(0)
		for part := range strings.SplitSeq(address, ".") {
			b, _ := strconv.ParseUint(part, 10, 8)
			n = n<<8 | b
		}
		found = append(found, Text{strings.Replace(sample, address, fmt.Sprint(n), 1), "put private_address into deny_detections", "private_address"})
	}
	return found
}

// isCommand reports whether an argument of this name has commands or statements.
func isCommand(argument string) bool { return isCommandName.MatchString(argument) }

var (
	isCommandName = lazyregexp.New(`(?i)(?:command|cmd|cmdline|script|shell|sql|query|statement|keys)s?$`)
	isStatement   = lazyregexp.New(`(?i)(?:sql|query|statement)s?$`)
	capitals      = lazyregexp.New(`\b[A-Z]{4,}\b`)
	isWord        = lazyregexp.New(`^[a-z][a-z0-9-]+(?: |$)`)
	words         = lazyregexp.New(`(?is)^(.*?\b(?:drop|truncate|delete|update|insert|alter|create|grant|revoke|select|from|into|copy))\s+(\w.*)$`)
	isBlocked     = lazyregexp.New(`^/(?:etc/(?:passwd|shadow|sudoers)|proc|sys|dev)(?:/|$)`)
	isPath        = lazyregexp.New(`^/[^/\s]+[^\s]*$`)
	isAddress     = lazyregexp.New(`\b(?:(?:127|10)\.\d{1,3}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}\b`)
)
