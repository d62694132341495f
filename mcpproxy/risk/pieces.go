package risk

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/lineedit"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/jsontext"
)

// An openLine is what operations have typed into a pane without Enter.
type openLine struct {
	pane  string
	text  []byte
	parts int
}

// add adds a piece, and has the line judged at its end if several made it.
func (l *openLine) add(w *walk, p *piece) {
	if len(l.text) <= maxJoined {
		l.text = w.appendTyped(l.text, p)
	}
	if l.parts++; p.enter {
		l.end(w)
	}
}

func (l *openLine) end(w *walk) {
	if l.parts > 1 {
		w.command(view(l.text), maxJoined)
	}
	l.text, l.parts = l.text[:0], 0
}

// pieces judges the lines that several operations of a list type together: one without
// Enter leaves its line to the next one. Each pane has a line, and so have all together,
// because a pane can be named in several ways.
func (w *walk) pieces(list []byte, t *Tool) {
	var all openLine
	var open []openLine
	eachElement(list, func(item []byte) bool {
		p := w.pieceOf(item, t)
		if p.n == 0 || p.enter && all.parts == 0 && open == nil {
			return true
		}
		all.add(w, &p)
		at := slices.IndexFunc(open, func(l openLine) bool { return l.pane == p.pane })
		if at < 0 {
			if p.enter {
				return true
			}
			if at = len(open); at == maxPanes {
				w.found(detector.Opaque)
				return false
			}
			open = append(open, openLine{pane: p.pane})
		}
		open[at].add(w, &p)
		return true
	})
	all.end(w)
	for i := range open {
		open[i].end(w)
	}
}

// A piece is what one operation types.
type piece struct {
	pane  string
	typed [4][]byte // as on the wire
	n     int       // of typed
	enter bool      // so does it in libtmux-mcp, unless told otherwise
}

func (w *walk) pieceOf(item []byte, t *Tool) piece {
	p := piece{enter: true}
	if named := jsontext.Lenient(item).Member("tool"); len(named) > 0 && named[0] == '"' {
		t = w.toolOf(text(named))
		p.enter = !strings.Contains(t.Name, "paste") && !strings.Contains(t.Name, "buffer")
		item = jsontext.Lenient(item).Member("arguments")
	}
	for lit, value := range jsontext.Lenient(item).Members() {
		name := w.decodedName(lit)
		switch {
		case isNamed(name, "enter"): // Python's Pydantic takes "off" and 0 for false
			p.enter = string(value) == "true" || string(value) == `"true"`
		case value[0] != '"':
		case isNamed(name, "pane_id"), isNamed(name, "pane"), isNamed(name, "target"):
			p.pane = text(value)
		case (w.argumentOf(name)&commandLine != 0 || w.argumentOf(name)&typed != 0 && t.executes) && p.n < len(p.typed):
			p.typed[p.n] = value
			p.n++
		}
	}
	return p
}

// appendTyped appends what a piece types; the name of a key is that key.
func (w *walk) appendTyped(dst []byte, p *piece) []byte {
	for _, value := range p.typed[:p.n] {
		s, _ := jsontext.Lenient(value).String(0)
		v := w.decoded(s)
		var ok bool
		if dst, ok = lineedit.AppendKey(dst, view(v)); !ok {
			dst = append(dst, v...)
		}
	}
	return dst
}
