package risk

import (
	"testing"
)

// Names of arguments that end in a separator, such as Python's global_.
func TestOddArgumentNames(t *testing.T) {
	a, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "_", "global_", "a.", "-", "A", "ÄÖ", "path_", " "} {
		tool := a.Tool("t"+name, []byte(`{"name":"t","inputSchema":{"type":"object","properties":{"`+name+`":{"type":"string"}}}}`))
		if r := a.Assess(tool, []byte(`{"`+name+`":"x"}`), nil); r.Category == 0 {
			t.Errorf("%q: no category", name)
		}
	}
}
