package terminal

import (
	"io"
	"testing"

	"auditproxy/deploy/dev"
)

// TestMessagesDoNotSteer checks that a message cannot move the cursor, and that
// its quotes are shown as they were quoted.
func TestMessagesDoNotSteer(t *testing.T) {
	if got, want := EscapeMessage("one\x1b[2J \u202e \"a\\n\"\ntwo"), "one\\x1b[2J \\u202e \"a\\n\"\ntwo"; got != want {
		t.Errorf("EscapeMessage = %q, want %q", got, want)
	}
}

func TestColours(t *testing.T) {
	_, slave := dev.Terminal(t)
	for _, tt := range []struct {
		w    io.Writer
		env  map[string]string
		want bool
	}{
		{slave, map[string]string{"TERM": "xterm"}, true},
		{slave, map[string]string{"TERM": "dumb"}, false},
		{slave, map[string]string{"NO_COLOR": "1"}, false},
		{io.Discard, nil, false},
	} {
		if got := Colours(tt.w, func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.env, got, tt.want)
		}
	}
}
