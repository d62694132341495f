package alert

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// arguments are an operation's arguments as a CEL map. Most conditions ask
// for one member, and most often it is missing: a member is decoded when it is
// used, the whole when more than one member is. The last duplicate of a name
// wins, as in most servers; a missing name is looked up case-insensitively,
// as servers in Go do. Text that is not an object has no members.
type arguments struct {
	text    audit.JSON
	members []member
	all     traits.Mapper // nil until more than a member is used
}

var _ traits.Mapper = (*arguments)(nil)

// A member is one of the arguments.
type member struct {
	name  string
	text  []byte
	value ref.Val // nil until used
}

func newArguments(text audit.JSON) *arguments {
	a := &arguments{text: text, members: make([]member, 0, 8)}
	err := jsontext.Members([]byte(text), func(name, value []byte) bool {
		a.members = append(a.members, member{name: string(jsontext.AppendUnquote(nil, name)), text: value})
		return true
	})
	if err != nil {
		a.text, a.members = "", nil
	}
	return a
}

// Find implements traits.Mapper.
func (a *arguments) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return a.whole().Find(key)
	}
	m := a.member(func(n string) bool { return n == string(name) })
	if m == nil {
		m = a.member(func(n string) bool { return strings.EqualFold(n, string(name)) })
	}
	if m == nil {
		return nil, false
	}
	if m.value == nil {
		m.value = types.DefaultTypeAdapter.NativeToValue(decode(string(m.text)))
	}
	return m.value, true
}

// member returns the last member with a name, nil if none has it.
func (a *arguments) member(has func(name string) bool) *member {
	for i := len(a.members) - 1; i >= 0; i-- {
		if has(a.members[i].name) {
			return &a.members[i]
		}
	}
	return nil
}

// whole returns the map of all members.
func (a *arguments) whole() traits.Mapper {
	if a.all == nil {
		members, ok := decode(string(a.text)).(map[string]any)
		if !ok {
			members = map[string]any{}
		}
		a.all = types.NewStringInterfaceMap(types.DefaultTypeAdapter, members)
	}
	return a.all
}

// The other methods of traits.Mapper are those of the whole.

func (a *arguments) ConvertToNative(t reflect.Type) (any, error) { return a.whole().ConvertToNative(t) }
func (a *arguments) ConvertToType(t ref.Type) ref.Val            { return a.whole().ConvertToType(t) }
func (a *arguments) Equal(other ref.Val) ref.Val                 { return a.whole().Equal(other) }
func (a *arguments) Type() ref.Type                              { return types.MapType }
func (a *arguments) Value() any                                  { return a.whole().Value() }
func (a *arguments) Contains(key ref.Val) ref.Val                { return a.whole().Contains(key) }
func (a *arguments) Get(key ref.Val) ref.Val                     { return a.whole().Get(key) }
func (a *arguments) Iterator() traits.Iterator                   { return a.whole().Iterator() }
func (a *arguments) Size() ref.Val                               { return a.whole().Size() }

// decode decodes JSON, nil if it is not valid.
func decode(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // or 1e999 would be an error
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return plain(v)
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = plain(member)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil && !math.IsInf(f, 0) {
			return string(v)
		}
		return f
	}
	return v
}
