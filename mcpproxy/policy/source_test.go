package policy

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// decoded is the value at the decoder's next token, with its position.
func decoded(d *json.Decoder, p *positions) (*node, error) {
	i := int(d.InputOffset())
	for i < len(p.source) && strings.IndexByte(" \t\r\n,:", p.source[i]) >= 0 {
		i++
	}
	n := new(node)
	n.line, n.column = p.at(i)
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case nil:
		n.text = "null"
	case bool:
		n.kind, n.text = boolean, strconv.FormatBool(token)
	case string:
		n.kind, n.text = text, token
	case json.Number:
		n.kind, n.text, n.whole = number, token.String(), !strings.ContainsAny(token.String(), ".eE")
		if _, err = token.Float64(); err != nil {
			return nil, err
		}
	case json.Delim:
		var names, values []*node
		n.kind = list
		if token == '{' {
			n.kind = object
		}
		for d.More() {
			if n.kind == object {
				key, err := decoded(d, p)
				if err != nil {
					return nil, err
				}
				names = append(names, key)
			}
			item, err := decoded(d, p)
			if err != nil {
				return nil, err
			}
			values = append(values, item)
		}
		n.children = append(names, values...)
		n.markAgain()
		_, err = d.Token()
	}
	return n, err
}

// FuzzReadJSON compares the reader with encoding/json's: the same nodes at the
// same positions, or a problem.
func FuzzReadJSON(f *testing.F) {
	for _, source := range []string{
		`{"a":1,"b":[true,false,null,-1.5e3,"x"],"c":{}}`, " [ ] ", "{\n\t\"a\" : \"é\\n\\u00e9\" ,\r\n \"a\":2}", `"\ud83d\ude00\ud83d \"\\"`, `[1,]`, `[1 2]`, `{"a"}`, `{"a":1}{}`, `1e999`, `01`, `"`, `[`,
		"{\"a\":\"\t\"}", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), `{"a":{"b":[[[{"c":1.0}]]]}}`, `nul`, `1 `, `[-0,0.0,1E+2]`,
	} {
		f.Add([]byte(source))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if invalid(source) < len(source) {
			return // refused before
		}
		got, problem := readJSON(source)
		if !json.Valid(source) {
			if problem == nil {
				t.Errorf("%q is read, want a problem", source)
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(string(source)))
		d.UseNumber()
		want, err := decoded(d, newPositions(source))
		if err == nil {
			if _, end := d.Token(); !errors.Is(end, io.EOF) {
				err = errors.New("more")
			}
		}
		switch {
		case problem != nil && err == nil && !strings.Contains(problem.Text, "levels"):
			t.Errorf("%q has the problem %v, want none", source, problem)
		case problem == nil && err != nil:
			t.Errorf("%q is read, want %v", source, err)
		case problem == nil:
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(node{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", source, diff)
			}
		}
	})
}
