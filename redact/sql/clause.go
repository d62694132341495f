// Package sql finds the secrets in statements of SQL.
//
// The files, from the top: clause, columns, finder.
package sql

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// Clauses adds the secrets of clauses behind a word for a password to found.
func (f *Finder) Clauses(found []lex.Span) []lex.Span {
	t := f.values.Text
	for i := 0; i < len(t); i++ {
		run := i
		for i < len(t) && lex.Classes[t[i]]&lex.IsAlnum != 0 {
			i++
		}
		if i-run == len("select") && lex.HasFoldSuffix(t[run:i], "select") {
			found = f.selected(found, run, i)
			continue
		}
		if i-run < 2 || !argv.WordStarts.Has(t[run:i]) || argv.WordAt(t, run)&argv.PassWord == 0 {
			continue
		}
		if v := f.clause(run, i); v.From < v.To {
			found = append(found, v)
			i = v.To - 1
		}
	}
	return found
}

// clause finds SECRET in PASSWORD FOR 'ann'@'%' = 'SECRET', PASSWORD E'SECRET',
// PASSWORD $$SECRET$$ and PASSWORD FROM 'old' TO 'SECRET', where the word is
// t[run:i].
func (f *Finder) clause(run, i int) lex.Span {
	t := f.values.Text
	from := i
	for from < len(t) && from-i < maxGap && t[from] <= ' ' {
		from++
	}
	if from == i || from+2 >= len(t) {
		return lex.Span{}
	}
	rest := t[from:min(len(t), from+maxClause)]
	for _, dollars := range []string{"$$", `\$\$`} {
		if inner, ok := bytes.CutPrefix(rest, []byte(dollars)); ok {
			if n := bytes.Index(inner, []byte(dollars)); n > 0 && lex.MarkLen(inner) != n {
				return lex.Span{From: from + len(dollars), To: from + len(dollars) + n}
			}
		}
	}
	kind := bytes.IndexByte(rest, ' ')
	switch {
	case kind > 0 && kind+1 < len(rest) && rest[kind+1] > ' ' && (kind == 1 && lex.IsDigit(rest[0]) || isKind(rest[:kind])): // of a router: password 7 SECRET
		from += kind + 1
		v := lex.Span{From: from, To: lex.CredentialEnd(t[:min(len(t), from+maxClause)], from)}
		if (v.To == len(t) || t[v.To] == '\n' || t[v.To] == '\r' || lex.Classes[t[v.To]]&lex.IsQuote != 0) &&
			(string(t[from-kind-1:from-1]) == "ENC" || lex.StartsLine(t, run)) && !prose.IsPlain(t[v.From:v.To]) {
			return v
		}
	case (rest[0]|0x20 == 'e' || rest[0]|0x20 == 'n') && lex.Classes[rest[1]]&lex.IsQuote != 0:
		return f.values.Quoted(from+1, 0)
	case len(rest) > 4 && bytes.EqualFold(rest[:4], []byte("for ")):
		if at := bytes.IndexByte(rest, '='); at > 0 && bytes.IndexByte(rest[:at], ';') < 0 && bytes.IndexByte(rest[:at], '\n') < 0 {
			for at++; at < len(rest) && rest[at] == ' '; at++ {
			}
			if at < len(rest) && lex.Classes[rest[at]]&lex.IsQuote != 0 {
				return f.values.Quoted(from+at, 0)
			}
		}
	case len(rest) > 5 && bytes.EqualFold(rest[:5], []byte("from ")) && lex.Classes[rest[5]]&lex.IsQuote != 0:
		v := f.values.Quoted(from+5, 0)
		const to = "' TO '"
		if v.To+len(to) < len(t) && bytes.EqualFold(t[v.To:v.To+len(to)], []byte(to)) {
			v.To = f.values.Quoted(v.To+len(to)-1, 0).To
		}
		return v
	}
	return lex.Span{}
}

// isKind reports whether w says how a router keeps the password behind it.
func isKind(w []byte) bool {
	switch string(w) {
	case "ENC", "simple", "cipher", "irreversible-cipher", "sha256", "sha512":
		return true
	}
	return false
}

// IsPragma reports whether the name that starts at first is the key of SQLCipher:
// PRAGMA key.
func IsPragma(t, name []byte, first int) bool {
	if at := bytes.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}
	if len(name) < 3 || len(name) > len("hexrekey") || !lex.HasFoldSuffix(name, "key") {
		return false
	}
	before := bytes.TrimRight(t[max(0, first-maxGap):first], " \t")
	return lex.HasFoldSuffix(before, "pragma")
}

// IsAttached reports whether the word at from is KEY of a database that SQLCipher
// attaches, ATTACH 'x.db' AS x KEY 'SECRET', or of a wireless network.
func IsAttached(t, w []byte, from int) bool {
	if len(w) != len("key") || !lex.HasFoldSuffix(w, "key") {
		return false
	}
	before := bytes.TrimRight(t[max(0, from-names.MaxPairName):from], " \t")
	if bytes.HasSuffix(before, []byte("option")) { // of OpenWrt
		return true
	}
	at := bytes.LastIndexByte(before, ' ')
	return at > 0 && lex.HasFoldSuffix(before[:at], " as")
}
