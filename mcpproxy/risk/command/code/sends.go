package code

import (
	"slices"
	"strings"

	"auditproxy/internal/lazyregexp"
)

var (
	// a variable for a file or what is in it, from the variable's name on or up to it
	readsFile = pattern{lazyregexp.New(`\b\w+\s*=\s*(?:[\w.]+\(\s*)?(?:\bopen\s*\([^()\n]*\)|[^;=\n]{0,80}\bread_?(?:bytes|text)\s*\(|[^;=\n]{0,80}\breadFile(?:Sync)?\s*\(|[^;=\n]{0,80}\bFile\.(?:read|binread|open)\b|[^;=\n]{0,80}\bfile_get_contents\s*\(\s*["'][^h"'])|\bopen\s*\([^()\n]*\)\s+as\s+\w+`), 6}
	// a call that sends a body, with its arguments
	sendsBody = pattern{lazyregexp.New(`(?i)(?:\.(?:post|put|patch|urlopen|request\.Request|sendall|send|storbinary|post_form|sendmail)!?|\bfetch|\burlopen|\bCURLOPT_POSTFIELDS)\s*[(,][^;\n]*`), 4}
)

var (
	// what is in a file that is open, from the variable's name on
	readsOpen = pattern{lazyregexp.New(`\b\w+\s*=\s*(?:\w+\(\s*)?\w+\.read(?:lines?)?\(`), 4}
	// a function that code defines, up to its parameters
	defines = pattern{lazyregexp.New(`\b(?:def|function|func|sub)\s+\w+\s*\(|\b(?:const|let|var)\s+\w+\s*=\s*(?:async\s*)?(?:function\s*)?\(`), 3}
)

// maxReads bounds the variables, and the calls, that are followed.
const maxReads = 8

// sendsVariable reports whether code reads a file into a variable and sends that as
// a body. A variable in a header or in another place is usually a token.
func sendsVariable(src *source) bool {
	if !src.has(readsFile) || !src.has(sendsBody) {
		return false
	}
	reads := src.find(readsFile, maxReads)
	for _, call := range src.find(sendsBody, maxReads) {
		for _, r := range reads {
			if r[0] < call[0] && isBodyOf(src, src.text[call[0]:call[1]], assigned(src.text[r[0]:r[1]])) {
				return true
			}
		}
	}
	return false
}

// sendsRead is sendsVariable for what is read of a variable, and for a function of the code
// that sends what it gets.
func sendsRead(src *source) bool {
	if !src.has(readsFile) || !src.has(sendsBody) {
		return false
	}
	var vars []variable
	for _, r := range src.find(readsFile, maxReads) {
		vars = append(vars, variable{assigned(src.text[r[0]:r[1]]), r[0]})
	}
	for _, r := range src.find(readsOpen, maxReads) {
		of := src.text[r[0]:r[1]]
		of = of[:strings.LastIndexByte(of, '.')]
		of = of[strings.LastIndexAny(of, " \t\r\n=(")+1:]
		if slices.ContainsFunc(vars, func(v variable) bool { return v.name == of && v.at < r[0] }) {
			vars = append(vars, variable{assigned(src.text[r[0]:r[1]]), r[0]})
		}
	}
	functions := src.find(defines, maxReads)
	for _, call := range src.find(sendsBody, maxReads) {
		for _, v := range vars {
			if v.at < call[0] && isBodyOf(src, src.text[call[0]:call[1]], v.name) {
				return true
			}
		}
		if sends := definedAround(src, functions, call[0]); sends != "" && passes(src, sends, vars) {
			return true
		}
	}
	return false
}

// A variable is one that has a file, or what is in one, from a place on.
type variable struct {
	name string
	at   int
}

// definedAround returns the name of the function in which a call is, "" if there is none.
func definedAround(src *source, functions [][]int, call int) (name string) {
	for _, f := range functions {
		if f[0] < call {
			words := strings.FieldsFunc(src.text[f[0]:f[1]], func(r rune) bool { return r >= 0x80 || !isNameByte(byte(r)) })
			if name = ""; len(words) > 1 {
				name = words[1]
			}
		}
	}
	return name
}

// passes reports whether a function gets one of the variables.
func passes(src *source, function string, vars []variable) bool {
	for from := 0; src.s.Spend(len(src.text[from:]) / searches); {
		i := strings.Index(src.text[from:], function+"(")
		if i < 0 {
			return false
		}
		from += i + len(function)
		args := arguments(src, from+1)
		for _, v := range vars {
			if v.at < from && slices.ContainsFunc(args, func(a string) bool { return a == v.name || strings.HasSuffix(a, "="+v.name) }) {
				return true
			}
		}
	}
	return false
}

// assigned returns the variable of a match of readsFile.
func assigned(read string) string {
	if i := strings.LastIndexAny(read, " \t"); strings.HasPrefix(read, "open") {
		return read[i+1:] // open(...) as f
	}
	return read[:strings.IndexAny(read, " \t\r\n=")]
}

// isBodyOf reports whether the arguments of a call have the variable as a whole one,
// or under a name that bodies have.
func isBodyOf(src *source, call, name string) bool {
	if !src.s.Spend(len(call)) {
		return false
	}
	for at := 0; ; at++ {
		i := strings.Index(call[at:], name)
		if i < 0 {
			return false
		}
		at += i
		after := strings.TrimLeft(call[at+len(name):], " ")
		before := strings.TrimRight(strings.TrimRight(call[:at], "$@"), " ")
		switch {
		case before == "", isNameByte(call[at-1]), after != "" && (isNameByte(after[0]) || after[0] == '['):
			continue
		}
		switch before[len(before)-1] {
		case '(', ',':
			return true
		case '=', ':':
			option := strings.TrimRight(before[:len(before)-1], " \"'")
			for _, body := range [...]string{"data", "body", "json", "content", "files", "payload"} {
				if n := len(option) - len(body); n >= 0 && strings.EqualFold(option[n:], body) {
					return true
				}
			}
		}
	}
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
