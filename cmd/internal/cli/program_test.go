package cli

import (
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

func TestMistakes(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--none"}, "unknown flag: --none; see program --help"},
		{[]string{"show", "--none"}, "unknown flag: --none; see program show --help"},
		{[]string{"show", "--lines", "x"}, `--lines is "x", want a whole number; see program show --help`},
		{[]string{"show", "--utc=x"}, `--utc is "x", want true or false; see program show --help`},
		{[]string{"show", "it"}, `show takes no arguments, got "it"; see program show --help`},
		{[]string{"shwo"}, `unknown command "shwo" for program; did you mean "show"? see program --help`},
		{[]string{"else"}, `unknown command "else" for program; see program --help`},
		{[]string{"show", "--lins", "3"}, "unknown flag: --lins; did you mean --lines? see program show --help"},
		{[]string{"show", "--ut"}, "unknown flag: --ut; did you mean --utc? see program show --help"},
		{[]string{"show", "-x"}, `unknown shorthand flag: 'x' in -x; see program show --help`},
		{[]string{"rules", "lst"}, `unknown command "lst" for program rules; did you mean "list"? see program rules --help`},
	}
	for _, test := range tests {
		root := &cobra.Command{Use: "program", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		show := &cobra.Command{Use: "show", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		show.Flags().Int("lines", 0, "")
		show.Flags().Bool("utc", false, "")
		rules := &cobra.Command{Use: "rules", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		rules.AddCommand(&cobra.Command{Use: "list", Run: func(*cobra.Command, []string) {}})
		root.AddCommand(show, rules)
		var got string
		if code := Execute(t.Context(), root, test.args, func(err error) { got = err.Error() }); code != ExitUnclear || got != test.want {
			t.Errorf("%q: exit code %d, said\n%s\nwant\n%s", test.args, code, got, test.want)
		}
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
