package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// requests judges what a client of HTTP has a service delete by a method that only sends:
// by the words of an address, as in POST /job/x/doDelete, or by a mutation of GraphQL.
func requests(s *shell.Shell, args []shell.Field) {
	sends, byQuery := false, false
	for _, a := range args {
		verb, _, _ := strings.Cut(strings.TrimLeft(a.Text, "-X"), "=")
		sends = sends || shell.In(strings.ToLower(verb), "post put patch d data data-raw data-binary json post-data body")
	}
	for _, a := range args {
		if strings.Contains(a.Text, "mutation") && deletesWord(a.Text, " {(\n\t:") {
			s.Add(detector.Teardown)
		}
		_, address, ok := strings.Cut(a.Text, "://")
		if !ok && strings.IndexAny(a.Text, "/.-@~") != 0 { // no path
			address = a.Text
		}
		address, _, _ = strings.Cut(address, "?")
		_, path, ok := strings.Cut(address, "/")
		if !sends || !ok || strings.ContainsAny(a.Text, " {\n") {
			continue
		}
		if strings.Contains(path, "_delete_by_query") {
			byQuery = true
		} else if deletesWord(path, "/") {
			s.Add(detector.Teardown)
		}
	}
	if text := shell.Join(args); byQuery && (strings.Contains(text, "match_all") || !shell.HasAny(text, `query"`, "?q=")) {
		s.Add(detector.SQLUnfiltered) // one with a condition is as a DELETE of SQL with one
	}
}

// deletesWord reports whether a word of a text, behind one of the separators, is a verb that
// deletes, alone or in front of a noun: delete, delete_series, deleteUser, doDelete.
func deletesWord(text, separators string) bool {
	for _, verb := range [...]string{"elete", "estroy", "urge", "erminate"} {
		for rest := text; ; {
			before, after, ok := strings.Cut(rest, verb)
			if rest = after; !ok {
				break
			}
			start := strings.TrimRight(before, "dDpPtT_o") // do_Delete
			if start != before && (start == "" || strings.ContainsRune(separators, rune(start[len(start)-1]))) && (after == "" || after[0] < 'a' || after[0] > 'z') {
				return true
			}
		}
	}
	return false
}
