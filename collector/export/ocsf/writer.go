package ocsf

import (
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/jsontext"
)

// A writer appends attributes to a JSON object. Names need no escaping. Each
// attribute starts with a comma; close replaces the first one.
type writer struct{ b []byte }

// A mark is where an object or a list started.
type mark struct{ name, inside int }

// begin starts an object that is no attribute.
func (w *writer) begin() mark { return mark{len(w.b), len(w.b)} }

func (w *writer) name(name string) {
	w.b = append(w.b, `,"`...)
	w.b = append(append(w.b, name...), `":`...)
}

// open starts an attribute that is an object.
func (w *writer) open(name string) mark {
	from := len(w.b)
	w.name(name)
	return mark{from, len(w.b)}
}

// close ends an object. One without members is removed, with its name.
func (w *writer) close(m mark) {
	if len(w.b) == m.inside {
		w.b = w.b[:m.name]
		return
	}
	w.b[m.inside] = '{'
	w.b = append(w.b, '}')
}

func (w *writer) list(name string) mark { return w.open(name) }

// element starts an object in a list.
func (w *writer) element() mark {
	from := len(w.b)
	w.b = append(w.b, ',')
	return mark{from, len(w.b)}
}

// closeList ends a list. One without elements is removed, with its name.
func (w *writer) closeList(m mark) {
	if len(w.b) == m.inside {
		w.b = w.b[:m.name]
		return
	}
	w.b[m.inside] = '['
	w.b = append(w.b, ']')
}

// raw appends attributes as they are.
func (w *writer) raw(attributes string) { w.b = append(append(w.b, ','), attributes...) }

// str appends a text.
func (w *writer) str(name, s string) {
	w.name(name)
	w.b = jsontext.AppendQuote(w.b, s)
}

// text appends a text unless it is empty.
func (w *writer) text(name, s string) {
	if s != "" {
		w.str(name, s)
	}
}

func (w *writer) integer(name string, n int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) truth(name string, v bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, v)
}

// json appends a value of strict JSON, on one line.
func (w *writer) json(name, v string) {
	w.name(name)
	w.value(v)
}

// value appends strict JSON without its line breaks, which can only be between
// tokens.
func (w *writer) value(v string) {
	if strings.IndexByte(v, '\n') < 0 && strings.IndexByte(v, '\r') < 0 {
		w.b = append(w.b, v...)
		return
	}
	for i := range len(v) {
		c := v[i]
		if c == '\n' || c == '\r' {
			c = ' '
		}
		w.b = append(w.b, c)
	}
}

// time appends a time in milliseconds and, as NAME_dt, in RFC 3339.
func (w *writer) time(name string, t time.Time) {
	w.integer(name, t.UnixMilli())
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return // RFC 3339 has no form for it
	}
	w.b = append(append(append(w.b, `,"`...), name...), `_dt":"`...)
	w.b = t.AppendFormat(w.b, "2006-01-02T15:04:05.000000Z")
	w.b = append(w.b, '"')
}

// An id is a value of OCSF with its caption.
type id struct {
	n       int
	caption string
}

// id appends NAME_id and its caption.
func (w *writer) id(name string, v id) {
	w.b = append(append(append(w.b, `,"`...), name...), `_id":`...)
	w.b = strconv.AppendInt(w.b, int64(v.n), 10)
	w.str(name, v.caption)
}

// other is the id of a word that OCSF does not have.
func other(word string) id { return id{99, word} }

func (w *writer) unsigned(name string, n uint64) {
	w.name(name)
	w.b = strconv.AppendUint(w.b, n, 10)
}

// item appends a text to a list.
func (w *writer) item(s string) { w.b = jsontext.AppendQuote(append(w.b, ','), s) }
