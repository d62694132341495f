package alert

import (
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// FuzzArguments compares members that are decoded one by one with the result of
// encoding/json for the same text.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{
		`{}`, ``, `null`, `[{"a":1}]`, `{"a":1}x`,
		`{"a":"b","n":null,"f":-1.5e3,"big":1e999,"t":true,"l":[1,{"x":[]}],"o":{"a":{"b":"c"}}}`,
		`{"a":1,"a":"last"}`, `{"a":1,"\u0061":2}`, `{"\ud800":"\udfff","":"\u0000"}`, ` { "a b" : "\"\\\/" } `,
	} {
		f.Add(text, "a")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		if !jsontext.Valid([]byte(text)) {
			return // no record has it
		}
		whole := newArguments(audit.JSON(text)).whole()
		keys := []ref.Val{types.String(other), types.Int(1), types.NullValue}
		for it := whole.Iterator(); it.HasNext() == types.True; {
			keys = append(keys, it.Next())
		}
		a := newArguments(audit.JSON(text))
		for _, key := range keys {
			for range 2 { // what was found is kept
				got, found := a.Find(key)
				want, wanted := whole.Find(key)
				if found != wanted || found && got.Equal(want) != types.True {
					t.Errorf("%s: %v is %v, %t, want %v, %t", text, key, got, found, want, wanted)
				}
			}
		}
	})
}
