package guard

import (
	"slices"

	"auditproxy/mcpproxy/risk/command/shell"
)

// verb returns operand n.
func verb(args []shell.Field, n int) string {
	for _, a := range args {
		if len(a.Text) > 0 && a.Text[0] == '-' {
			continue
		}
		if n--; n < 0 {
			return a.Text
		}
	}
	return ""
}

// hasWord reports whether one of the arguments is one of the words.
func hasWord(args []shell.Field, words ...string) bool {
	return slices.ContainsFunc(args, func(a shell.Field) bool { return shell.OneOf(a.Text, words...) })
}
