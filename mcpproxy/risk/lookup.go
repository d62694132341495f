package risk

import (
	"bytes"

	"auditproxy/mcpproxy/risk/command"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/jsontext"
)

// maxMeanings bounds the names of which a walk remembers the meaning.
const maxMeanings = 256

// argumentOf is the function of that name, asked once for most names.
func (w *walk) argumentOf(name []byte) argument {
	arg, ok := w.meanings[string(name)]
	if !ok {
		arg = argumentOf(name)
		if len(w.meanings) < maxMeanings && len(name) <= maxName {
			if w.meanings == nil {
				w.meanings = make(map[string]argument)
			}
			w.meanings[string(name)] = arg
		}
	}
	return arg
}

// decodedName returns the text of a name, good until the next one.
func (w *walk) decodedName(name jsontext.String) []byte {
	if name.Plain() {
		return name.Inner
	}
	w.names = name.Append(w.names[:0])
	return w.names
}

// decoded returns the text of a string, good until the next one.
func (w *walk) decoded(s jsontext.String) []byte {
	if !s.Escaped {
		return s.Inner
	}
	w.spare = s.Append(w.spare[:0])
	w.used = max(w.used, len(w.spare))
	return w.spare
}

func (w *walk) toolOf(name string) *Tool {
	if w.tool != nil {
		if t := w.tool(name); t != nil {
			return t
		}
	}
	if w.last == nil || w.last.Name != name {
		w.last = w.a.Tool(name, nil)
	}
	return w.last
}

// command judges a text that a shell runs, of at most longest bytes. Following a
// text takes much longer than reading it, so the texts of a call have one budget.
func (w *walk) command(text string, longest int) {
	if !command.Matters(text) {
		if d := w.a.commands.Match(text); d != 0 {
			w.found(d)
		}
		return
	}
	if len(text) > longest {
		w.found(detector.Opaque)
		return
	}
	d, left := w.a.commands.Detect(text, w.budget)
	if w.budget = left; w.foreign && left > 0 && len(text) <= maxCode {
		d &^= detector.Opaque
	}
	if d != 0 {
		w.found(d)
	}
}

// isNamed reports whether a name is want for some server: those in Go ignore
// case.
func isNamed(name []byte, want string) bool { return bytes.EqualFold(name, []byte(want)) }
