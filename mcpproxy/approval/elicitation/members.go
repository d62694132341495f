package elicitation

import (
	"strings"

	"auditproxy/schemas/jsontext"
)

// maxMessage bounds what is read of a client, in bytes, except for the call that
// it repeats. A choice takes less than 200.
const maxMessage = 64 << 10

// members returns the values of the members of an object that have the names, ""
// for none. It reports false for what is not a strict JSON object, and for one
// that two readers could read differently: a name occurs twice, or in another
// case, as some servers accept it.
func members(object string, names ...string) (values []string, ok bool) {
	values = make([]string, len(names))
	clear := true
	err := jsontext.Members(object, func(name, value string) bool {
		name = jsontext.Unquote(name)
		for i, want := range names {
			if strings.EqualFold(name, want) {
				clear = clear && name == want && values[i] == ""
				values[i] = value
			}
		}
		return clear
	})
	return values, err == nil && clear
}

// text returns the text of a value that is a string, "" for any other.
func text(value string) string {
	if value == "" || value[0] != '"' {
		return ""
	}
	return jsontext.Unquote(value)
}

func isObject(value string) bool { return value != "" && value[0] == '{' }

// isNull reports whether a member is missing or null, which some clients write
// for one that they leave out.
func isNull(value string) bool { return value == "" || value == "null" }
