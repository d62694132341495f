package service

import (
	"slices"
	"strings"

	"auditproxy/schemas/jsontext"
)

// maxInner is how many texts that are JSON are read inside each other.
const maxInner = 2

// pairs calls yield for each text and each other scalar in a value, at any depth, with the
// name of the member that it is in; also in texts that are JSON, such as a bucket's policy.
func pairs(value []byte, inner int, yield func(name, text string)) {
	b := jsontext.Lenient(value)
	if b.Start(0) == len(b) {
		return
	}
	const longest = 256 // no address or name of a member is longer
	name, last := "", ""
	var buf []byte
	b.Tokens(b.Start(0), func(structure byte, s jsontext.String, scalar []byte) {
		switch {
		case structure == ':':
			name = strings.ToLower(last)
		case structure != 0:
		case scalar != nil:
			yield(name, string(scalar[:min(len(scalar), longest)]))
		default:
			if buf = s.Append(buf[:0]); inner < maxInner && len(buf) > 1 && buf[0] == '{' {
				pairs(slices.Clone(buf), inner+1, yield)
				return
			}
			if last = ""; len(buf) <= longest {
				last = string(buf)
			}
			yield(name, last) // a name too, which is a text before its colon
		}
	})
}

// redirects reports whether a rule for mail sends it to somebody else.
func redirects(arguments []byte) (found bool) {
	forwards, addressed := false, false // {"forwardTo": [{"emailAddress": {"address": "a@b"}}]}
	pairs(arguments, 0, func(name, text string) {
		forwards = forwards || isRedirect(text)
		switch {
		case isRedirect(name):
			found = found || !isRedirect(text) && text != "" && text != "false" && text != "null"
		case name == "address":
			addressed = addressed || strings.Contains(text, "@")
		}
	})
	return found || forwards && addressed
}

// isRedirect reports whether a member says to whom mail goes on.
func isRedirect(name string) bool {
	if len(name) < len("forward") || len(name) > 32 || name[0]|0x20 != 'f' && name[0]|0x20 != 'r' {
		return false
	}
	switch strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", "")) {
	case "forward", "forwardto", "forwardtoemail", "redirect", "redirectto", "forwardingaddress", "forwardasattachmentto", "forwardingemail", "redirectaddress":
		return true
	}
	return false
}

// maxLevels is how many levels of arguments givesAll reads.
const maxLevels = 16

// givesAll reports whether arguments give rights to everybody.
func givesAll(arguments []byte) bool { return gives("", arguments, 0) }

// gives is givesAll for the value of a member.
func gives(name string, value []byte, level int) (found bool) {
	if level == maxLevels || len(value) == 0 {
		return false
	}
	b := jsontext.Lenient(value)
	switch value[0] {
	case '{':
		denies := strings.EqualFold(text(b.Member("Effect")), "deny") // a statement of a policy
		for lit, inner := range b.Members() {
			if name := strings.ToLower(string(lit.Append(nil))); !denies || name != "principal" {
				found = found || gives(name, inner, level+1)
			}
		}
	case '[':
		for inner := range b.Elements() {
			found = found || gives(name, inner, level+1)
		}
	case '"':
		v := text(value)
		if strings.HasPrefix(v, "{") {
			return gives(name, []byte(v), level+1)
		}
		return isEverybody(name, v)
	}
	return found
}

// isEverybody reports whether a member with a text names everybody, as those who have rights.
func isEverybody(name, text string) bool {
	switch name {
	case "principal", "principals", "aws", "member", "members", "grantee", "user", "users", "acl", "visibility", "entity", "canned_acl", "cannedacl", "who", "audience", "shared_with":
		if text == "*" {
			return true
		}
	case "type", "scope", "access", "role", "link_access", "linkscope", "general_access", "generalaccess":
	default:
		return false
	}
	switch strings.ToLower(text) {
	case "anyone", "anonymous", "everyone", "allusers", "allauthenticatedusers", "public-read", "public-read-write", "authenticated-read", "anyonewithlink", "anyone_with_link", "anyonewiththelink", "public":
		return true
	}
	return false
}
