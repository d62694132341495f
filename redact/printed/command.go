package printed

import (
	"bytes"
	"sync"

	"auditproxy/redact/lex"
)

// Prints reports whether the purpose of a command line is to print a secret.
func (f *Finder) Prints(line []byte) bool {
	if len(line) > maxCommand {
		return false
	}
	f.comment = false
	return f.prints(line, false)
}

// PrintsWords is Prints for the words of a command.
func (f *Finder) PrintsWords(words [][]byte) bool {
	f.buf, f.tried, f.ofProgram = f.buf[:0], 0, false
	f.comment = false
	return f.stage(words[:min(len(words), maxWords)], false, noFlow, 0) == secretFlow
}

// prints is Prints for a line of a shell or, if ofProgram, of another program.
func (f *Finder) prints(line []byte, ofProgram bool) bool {
	if cap(f.buf) > maxKept {
		f.buf = nil
	}
	f.buf, f.tried, f.ofProgram = f.buf[:0], 0, ofProgram
	return f.line(line, 0) || foldIndex(line[:min(len(line), len(" select "))], "select ") >= 0 && f.isSelection(line) ||
		ofProgram && (f.isReference(line) || f.isCode(line))
}

// A flow is what goes from a command to the next one.
type flow uint8

const (
	noFlow     flow = iota
	namedFlow       // secrets behind their names
	secretFlow      // secrets
)

// line reports whether a line of a shell prints a secret.
func (f *Finder) line(t []byte, depth int) bool {
	if depth > maxDepth {
		return false
	}
	first := len(f.words) // those before it are of the command that this one is in
	defer func() { f.words = f.words[:first] }()
	nested, quiet, out := false, false, noFlow
	for i := 0; ; {
		for i < len(t) && (t[i] <= ' ' && t[i] != '\n' || t[i] == '(' || t[i] == '{' && i+1 < len(t) && t[i+1] == ' ') {
			i++
		}
		if i >= len(t) || bytesOf[t[i]]&endsCommand != 0 {
			out = f.stage(f.words[first:], nested, out, depth)
			if quiet {
				out = noFlow
			}
			piped := i+1 < len(t) && t[i] == '|' && t[i+1] != '|'
			if !piped && out == secretFlow {
				return true
			}
			if i >= len(t) || t[i] == '#' {
				return false
			}
			f.words, nested, quiet = f.words[:first], false, false
			if i++; !piped {
				out = noFlow
			}
			continue
		}
		switch t[i] {
		case '<':
			for i < len(t) && t[i] == '<' {
				i++
			}
			continue
		case '>':
			fd := i > 0 && t[i-1] == '2'
			for i < len(t) && (t[i] == '>' || t[i] == '&' || t[i] == '|' || t[i] == ' ') {
				i++
			}
			w, n := f.word(t[i:], &nested, depth)
			i += max(n, 1)
			quiet = quiet || !fd && len(w) > 0 && (len(w) > 1 || !lex.IsDigit(w[0])) && !bytes.HasPrefix(w, []byte("/dev/std")) && string(w) != "/dev/tty"
			continue
		}
		w, n := f.word(t[i:], &nested, depth)
		i += max(n, 1)
		if i < len(t) && t[i] == '>' && len(w) == 1 && lex.IsDigit(w[0]) {
			continue // the number of a descriptor
		}
		if len(f.words) < first+maxWords {
			f.words = append(f.words, w)
		}
	}
}

// The classes of bytes of a line; others mean themselves.
const (
	endsCommand = 1 << iota
	endsWord
	quotes
)

var bytesOf = func() (t [256]byte) {
	for c := range byte(' ' + 1) {
		t[c] = endsWord
	}
	for c, class := range map[byte]byte{'|': endsCommand | endsWord, ';': endsCommand | endsWord, '&': endsCommand | endsWord, '\n': endsCommand | endsWord, ')': endsCommand | endsWord,
		'#': endsCommand, '<': endsWord, '>': endsWord, '"': quotes, '\'': quotes, '`': quotes, '$': quotes, '\\': quotes} {
		t[c] = class
	}
	return t
}()

// hiddenDollar replaces the dollar sign between apostrophes, which starts no variable.
const hiddenDollar = 1

// word returns the word that t starts with, without its quotes, and its length. It sets nested
// if a command in it prints a secret.
func (f *Finder) word(t []byte, nested *bool, depth int) (w []byte, n int) {
	from := len(f.buf)
	var quote byte
	for n < len(t) {
		c := t[n]
		switch {
		case bytesOf[c] == 0:
			f.buf = append(f.buf, c)
		case quote == 0 && bytesOf[c]&endsWord != 0:
			return f.buf[from:], n
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && n+1 < len(t) && (t[n+1] == '$' || t[n+1] == '"' || t[n+1] == '\'' || t[n+1] == ' ' || t[n+1] == '\\'):
			n++
			if c = t[n]; c == '$' {
				c = hiddenDollar
			}
			f.buf = append(f.buf, c)
		case c == '$' && quote == '\'':
			f.buf = append(f.buf, hiddenDollar)
		case c == '$' && n+1 < len(t) && t[n+1] == '(', c == '`' && quote != '\'':
			inner, length := substitution(t[n:])
			size := len(f.buf)
			if file, ok := bytes.CutPrefix(inner, []byte("<")); ok && f.isFile(bytes.TrimSpace(file)) || f.line(inner, depth+1) {
				*nested = true
			}
			f.buf = append(f.buf[:size], hiddenDollar)
			n += length
			continue
		default:
			f.buf = append(f.buf, c)
		}
		n++
	}
	return f.buf[from:], n
}

// substitution returns the command in the substitution that t starts with, $(…) or `…`, and
// the length of both.
func substitution(t []byte) (inner []byte, n int) {
	if t[0] == '`' {
		end := bytes.IndexByte(t[1:], '`')
		if end < 0 {
			return t[1:], len(t)
		}
		return t[1 : 1+end], end + 2
	}
	open := 0
	for n = 1; n < len(t); n++ {
		switch t[n] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return t[2:n], n + 1
			}
		}
	}
	return t[2:], len(t)
}

// stage returns what a command gives to the next one, which reads in from the one before.
func (f *Finder) stage(words [][]byte, nested bool, in flow, depth int) flow {
	words = command(words)
	if len(words) == 0 {
		return noFlow
	}
	base, args := baseOf(words[0]), words[1:]
	p := programOf(base)
	if p == nil {
		if f.isVariable(words[0]) || f.isCode(words[0]) {
			return secretFlow
		}
		return noFlow
	}
	switch {
	case p.kind == statement && !f.ofProgram:
		return noFlow
	case p.kind == echo:
		if nested || f.hasVariable(args) {
			return secretFlow
		}
		return noFlow
	case p.kind == wrapper && f.isWrapped(args, depth):
		return secretFlow
	case p.kind == filter && nested && (string(base) != "grep" && string(base) != "sed" && string(base) != "awk"):
		return secretFlow
	case p.kind == filter && isCount(base, args):
		return noFlow
	case f.isSource(p, args, depth), p.kind == filter && in == namedFlow && isCutter(base, args):
		return secretFlow
	case p.kind == filter && in != noFlow:
		return in
	case f.listsNamed(base, args):
		return namedFlow
	}
	return noFlow
}

// isSource reports whether a program with these arguments prints a secret of its own.
func (f *Finder) isSource(p *program, args [][]byte, depth int) bool {
	for _, pattern := range p.patterns {
		if f.matches(pattern, args, depth) {
			return true
		}
	}
	return false
}

// matches reports whether args have the parts of a pattern in order.
func (f *Finder) matches(pattern []part, args [][]byte, depth int) bool {
	at := 0
	for i := range pattern {
		p := &pattern[i]
		switch p.kind {
		case '!':
			for _, w := range args {
				if p.has(w) {
					return false
				}
			}
			continue
		case '?':
			if f.comment {
				return false // # pass it on
			}
		case 'N':
			return f.isWrapped(args[at:], depth)
		}
		for at < len(args) && !f.is(args[at], p) {
			if p.kind == '?' && (len(args[at]) == 0 || args[at][0] != '-') {
				return false // it is another word
			}
			at++
		}
		if at == len(args) {
			return false
		}
		at++
	}
	for _, w := range args {
		if isOfLogin(w) {
			return false
		}
	}
	return true
}

// What grep and kubectl have among their arguments to print secrets behind their names.
var (
	namedLine   = sync.OnceValue(func() []part { return parts("NAME") })
	namedObject = sync.OnceValue(func() []part { return parts("get secret,secrets,secret/*,secrets/* json,yaml,-o*json,-o*yaml") })
)

// listsNamed reports whether a program prints secrets behind their names.
func (f *Finder) listsNamed(base []byte, args [][]byte) bool {
	switch string(base) {
	case "grep", "egrep", "rg", "findstr":
		return f.matches(namedLine(), args, maxDepth)
	case "kubectl", "oc", "k":
		return f.matches(namedObject(), args, maxDepth)
	}
	return false
}

// command returns words without what is set for the command.
func command(words [][]byte) [][]byte {
	for len(words) > 0 {
		at := bytes.IndexByte(words[0], '=')
		if at < 1 && string(words[0]) != "&" && string(words[0]) != "." && string(words[0]) != "!" || at > 0 && !isName(words[0][:at]) {
			break
		}
		words = words[1:]
	}
	return words
}

func isName(b []byte) bool {
	for _, c := range b {
		if lex.Classes[c]&lex.IsAlnum == 0 && c != '_' {
			return false
		}
	}
	return true
}

// baseOf returns the name of the program at a path.
func baseOf(w []byte) []byte {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] == '/' || w[i] == '\\' {
			w = w[i+1:]
			break
		}
	}
	return bytes.TrimSuffix(w, []byte(".exe"))
}

// isWrapped reports whether one of the words starts a command that prints a secret, or is the
// line of one.
func (f *Finder) isWrapped(words [][]byte, depth int) bool {
	if depth > maxDepth {
		return false
	}
	for k, w := range words {
		if bytes.IndexByte(w, ' ') > 0 {
			if f.line(restored(w), depth+1) {
				return true
			}
			continue
		}
		if programOf(baseOf(w)) != nil {
			if f.tried++; f.tried > maxTried {
				return false
			}
			if f.stage(words[k:], false, noFlow, depth+1) == secretFlow {
				return true
			}
		}
	}
	return false
}

// restored returns a line in quotes as the shell that it is for reads it.
func restored(w []byte) []byte {
	for i, c := range w {
		if c == hiddenDollar {
			w[i] = '$'
		}
	}
	return w
}

// hasVariable reports whether one of the words has a variable with the name of a secret.
func (f *Finder) hasVariable(words [][]byte) bool {
	for _, w := range words {
		if f.isVariable(w) {
			return true
		}
	}
	return false
}

const (
	maxKept  = 64 << 10 // bytes of memory that are kept from one command to the next
	maxWords = 48       // of a command
	maxDepth = 3        // of commands in commands
	maxTried = 6        // words of wrappers that may be programs
)
