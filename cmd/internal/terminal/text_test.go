package terminal

import "testing"

// TestMessagesDoNotSteer checks that a message cannot move the cursor, and that
// its quotes are shown as they were quoted.
func TestMessagesDoNotSteer(t *testing.T) {
	if got, want := EscapeMessage("one\x1b[2J \u202e \"a\\n\"\ntwo"), "one\\x1b[2J \\u202e \"a\\n\"\ntwo"; got != want {
		t.Errorf("EscapeMessage = %q, want %q", got, want)
	}
}
