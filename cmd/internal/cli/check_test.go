package cli

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.Listen("tcp", l.Addr().String())
	if got := InUse(err, "metrics.listen"); !errors.Is(got, err) || !strings.HasSuffix(got.Error(), "address already in use: stop what listens there, or choose another metrics.listen") {
		t.Errorf("InUse = %v", got)
	}
	_, err = net.Listen("tcp", "127.0.0.1:x")
	if got := InUse(err, "metrics.listen"); got != err {
		t.Errorf("InUse of another error = %v, want it unchanged", got)
	}
}

// TestProblemHasNoLogin keeps the password of an address out of messages.
func TestProblemHasNoLogin(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"kafka-1", `"kafka-1"`},
		{"ann@h:1", `"ann@h:1"`},
		{"a:b:1", `"a:b:1"`},
		{"https://h/a?b", `"https://h/a?<secret>"`},
		{"h:1?password=s3cr3t", `"h:1?<secret>"`},
		{"what?", `"what?"`},
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
