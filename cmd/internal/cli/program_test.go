package cli

import (
	"context"
	"errors"

	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestExecute(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		code   int
		saying []string
	}{
		{name: "no error"},
		{"an error", errors.New("what"), ExitUnclear, []string{"what"}},
		{"a code", ExitError{Code: ExitFound}, ExitFound, nil},
		{"a code and an error", ExitError{ExitConfig, errors.New("what")}, ExitConfig, []string{"what"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return test.err }}
			var saying []string
			code := Execute(t.Context(), root, nil, func(err error) { saying = append(saying, err.Error()) })
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if diff := cmp.Diff(test.saying, saying); diff != "" {
				t.Errorf("what is said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecuteNamesTheHelp(t *testing.T) {
	root := &cobra.Command{Use: "program", Run: func(*cobra.Command, []string) {}}
	sub := &cobra.Command{Use: "sub", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(sub)
	const want = "unknown flag: --none; see program sub --help"
	code := Execute(context.Background(), root, []string{"sub", "--none"}, func(err error) {
		if err.Error() != want {
			t.Errorf("said %q, want %q", err, want)
		}
	})
	if code != ExitUnclear {
		t.Errorf("exit code %d, want %d", code, ExitUnclear)
	}
}

func TestGetenv(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3", "A"}
	if got := Getenv(env, "A"); got != "3" {
		t.Errorf("Getenv(A) = %q, want 3", got)
	}
	if got := Getenv(env, "B"); got != "" {
		t.Errorf("Getenv(B) = %q", got)
	}
}

// TestMessagesDoNotSteer checks that a message cannot move the cursor, while
// what it quotes is shown as it was quoted.
func TestMessagesDoNotSteer(t *testing.T) {
	if got, want := EscapeMessage("one\x1b[2J \u202e \"a\\n\"\ntwo"), "one\\x1b[2J \\u202e \"a\\n\"\ntwo"; got != want {
		t.Errorf("EscapeMessage = %q, want %q", got, want)
	}
}
