package mcpproxy

import (
	"testing"

	"auditproxy/schemas/audit"
)

// The place of a detection has names that the record's arguments show, and no
// name below a hidden value.
func TestPlacesAreThoseOfTheRecord(t *testing.T) {
	const hidden = `{"redacted":true,"type":"dict"}`
	for _, tt := range []struct{ detector, method, args, at, want string }{
		{"opaque", "tools/call", `{"keys":{"hmac_sha256_prefix":"0","len":1}}`, "args.keys", "args.keys"},
		{"opaque", "tools/call", `{"token":` + hidden + `}`, "args.token.secret", "args.token"},
		{"opaque", "tools/call", `{"token":` + hidden + `}`, "args.token[0].secret[1]", "args.token[0]"},
		{"opaque", "tools/call", `{"environment":{"A":{"hmac_sha256_prefix":"0","len":1}}}`, "args.environment.A", "args.environment.A"},
		{"opaque", "tools/call", `{"operations":[{"tool":"a"},{"tool":"b","arguments":{"keys":1}}]}`, "args.operations[1].arguments.keys", "args.operations[1].arguments.keys"},
		{"opaque", "tools/call", `{"operations":[{"tool":"a"},{"tool":"b","arguments":{"keys":1}}]}`, "args.operations[0].arguments.keys", "args.operations[0]"},
		{"opaque", "tools/call", `{"a.b":{"c":1},"a":1}`, "args.a.b.c", "args.a.b.c"},
		{"opaque", "tools/call", `{"a":1,"ab":2}`, "args.abc", "args"},
		{"opaque", "tools/call", `{}`, "args.…[0].…", "args.…[0].…"},
		{"opaque", "tools/call", `{"a":1}`, "args.….a", "args.…"},
		{"opaque", "tools/call", `{"a":[1]}`, "args.a[18446744073709551616]", "args.a[18446744073709551616]"},
		{"missing_argument", "tools/call", `{"a":1}`, "args.keys", "args.keys"},
		{"missing_argument", "tools/call", `{"a":{"type":"dict","redacted":true}}`, "args.a.secret", "args.a"},
		{"missing_argument", "tools/call", `{"a":"xxxxx…[len=900]"}`, "args.a.secret", "args.a"},
		{"more", "tools/call", `{"a":1}`, "args", "args"},
		{"path_blocked", "resources/read", `{}`, "args.uri", "args.uri"},
		{"path_blocked", "other", `{}`, "args.secret.uri", "args"},
		{"path_blocked", "prompts/get", `{"file":"/etc/shadow"}`, "args.arguments.file", "args.arguments.file"},
		{"path_blocked", "prompts/get", `{"token":` + hidden + `}`, "args.arguments.token.secret", "args.arguments.token"},
	} {
		r := facts{Method: tt.method, Args: audit.JSON(tt.args)}
		got, err := audit.ParseDetections(showDetections([]audit.Detection{{Detector: tt.detector, At: tt.at}}, &r))
		if err != nil || len(got) != 1 || got[0].At != tt.want {
			t.Errorf("%s %s in %s: got %v, %v, want %s", tt.detector, tt.at, tt.args, got, err, tt.want)
		}
	}
}
