package cli

import "testing"

// TestProblemHasNoLogin keeps the password of an address out of messages.
func TestProblemHasNoLogin(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"kafka-1", `"kafka-1"`},
		{"ann@h:1", `"ann@h:1"`},
		{"a:b:1", `"a:b:1"`},
		{"https://h/a?b", `"https://h/a?<secret>"`},
		{"ann:s3cr3t@h:1", `"<secret>@h:1"`},
		{"ann:s3@cr3t@h:1", `"<secret>@h:1"`},
		{"kafka://ann:s3cr3t@h:1", `"kafka://<secret>@h:1"`},
		{"clickhouse://ann:s3cr3t?@h:1/db?password=s3cr3t", `"clickhouse://<secret>@h:1/db?<secret>"`},
	} {
		w := newWorld(t)
		c := Checker{Values: w.mustLoad(t)}
		c.Problem("tenant", "%q: want host:port", tt.value)
		if got, want := c.Problems[0].Err.Error(), tt.want+": want host:port"; got != want {
			t.Errorf("problem with %q = %s, want %s", tt.value, got, want)
		}
	}
}
