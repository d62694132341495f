package clients

import (
	"bytes"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
)

// text returns the text of a string, and nothing for any other value.
func text(v hujson.Value) string {
	if lit, ok := v.Value.(hujson.Literal); ok && lit.Kind() == '"' {
		return lit.String()
	}
	return ""
}

// objects returns the objects in obj under name: the client chooses which of
// several equal names counts.
func objects(obj *hujson.Object, name string) (lists []*hujson.Object) {
	for _, m := range obj.Members {
		if list, ok := m.Value.Value.(*hujson.Object); ok && text(m.Name) == name {
			lists = append(lists, list)
		}
	}
	return lists
}

// unescaped reports whether a string is written without escapes.
func unescaped(v hujson.Value) bool {
	lit, ok := v.Value.(hujson.Literal)
	return ok && string(lit) == `"`+lit.String()+`"`
}

// gap returns the space that belongs before another value like the one at off:
// a line end and the same indentation if that value begins its line.
func gap(data []byte, off int) string {
	line := bytes.LastIndexByte(data[:off], '\n') + 1
	indent := data[line:off]
	if line == 0 || len(bytes.Trim(indent, " \t")) > 0 {
		return " "
	}
	if bytes.HasSuffix(data[:line], []byte("\r\n")) {
		return "\r\n" + string(indent)
	}
	return "\n" + string(indent)
}

func replaced(v hujson.Value, with string) udiff.Edit {
	return udiff.Edit{Start: v.StartOffset, End: v.EndOffset, New: with}
}

// inside is an edit that empties an object.
func inside(obj hujson.Value) udiff.Edit {
	return udiff.Edit{Start: obj.StartOffset + len("{"), End: obj.EndOffset - len("}")}
}

// spliced returns data[start:end] after edits that lie in it, in their order.
func spliced(data []byte, start, end int, edits []udiff.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.Write(data[start:e.Start])
		b.WriteString(e.New)
		start = e.End
	}
	b.Write(data[start:end])
	return b.String()
}
