package cli

import (
	"errors"
	"strings"
	"syscall"
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
		{[]string{"group", "iner"}, `unknown command "iner" for program group; did you mean "inner"? see program group --help`},
		{[]string{"completion", "tcsh"}, `unknown command "tcsh" for program completion; see program completion --help`},
		{[]string{"help", "shwo"}, `unknown command "shwo" for program; did you mean "show"? see program --help`},
		{[]string{"help", "rules", "lst"}, `unknown command "lst" for program rules; did you mean "list"? see program rules --help`},
		{[]string{"rules", "lst"}, `unknown command "lst" for program rules; did you mean "list"? see program rules --help`},
	}
	for _, test := range tests {
		root := &cobra.Command{Use: "program", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		show := &cobra.Command{Use: "show", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		show.Flags().Int("lines", 0, "")
		show.Flags().Bool("utc", false, "")
		rules := &cobra.Command{Use: "rules", Args: NoArgs, Run: func(*cobra.Command, []string) {}}
		rules.AddCommand(&cobra.Command{Use: "list", Run: func(*cobra.Command, []string) {}})
		group := &cobra.Command{Use: "group"}
		group.AddCommand(&cobra.Command{Use: "inner", Run: func(*cobra.Command, []string) {}})
		root.AddCommand(show, rules, group)
		SetUsage(root, nil)
		var got string
		if code := Execute(t.Context(), root, test.args, func(err error) { got = err.Error() }); code != ExitUnclear || got != test.want {
			t.Errorf("%q: exit code %d, said\n%s\nwant\n%s", test.args, code, got, test.want)
		}
	}
}

// TestUnprinted has a full disk behind standard output.
func TestUnprinted(t *testing.T) {
	full := &fullWriter{}
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--help"}, "printing help: no space left on device"},
		{[]string{"help", "version"}, "printing help: no space left on device"},
		{[]string{"version", "--help"}, "printing help: no space left on device"},
		{[]string{"version"}, "printing the version: no space left on device"},
	}
	for _, test := range tests {
		root := &cobra.Command{Use: "program", Long: "It does nothing."}
		root.AddCommand(NewVersionCmd(full))
		root.SetOut(full)
		SetUsage(root, nil)
		var got string
		if code := Execute(t.Context(), root, test.args, func(err error) { got = err.Error() }); code != ExitUnclear || got != test.want {
			t.Errorf("%q: exit code %d, said %q, want %q", test.args, code, got, test.want)
		}
	}
}

type fullWriter struct{}

func (*fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestUsage(t *testing.T) {
	root := &cobra.Command{Use: "program COMMAND", Long: "It does nothing. \n", Example: "  program list"}
	root.PersistentFlags().String("config", "", "a `file`")
	list := &cobra.Command{Use: "list NAME", Short: "list something", Run: func(*cobra.Command, []string) {}}
	list.Flags().Bool("all", false, "everything")
	group := &cobra.Command{Use: "group", Short: "have commands"}
	group.AddCommand(&cobra.Command{Use: "inner", Short: "be inside", Run: func(*cobra.Command, []string) {}},
		&cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}})
	root.AddCommand(list, group)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	SetUsage(root, []Key{{Name: "pass", Kind: Password, Usage: "a secret"}})

	const behind = "\n\nThe flags of the configuration work here too: program --help\n"
	tests := []struct {
		args []string
		want string
	}{
		{nil, `It does nothing.

Usage:
  program COMMAND [flags]

Examples:
  program list

Commands:
  group       have commands
  list        list something

Flags:
      --config file   a file
  -h, --help          help for program

Variables without a flag, because other users can read a command line:
  PROGRAM_PASS   a secret

More about a command: program COMMAND --help
`},
		{[]string{"list"}, `list something

Usage:
  program list NAME [flags]

Flags:
      --all    everything
  -h, --help   help for list` + behind},
		{[]string{"group"}, `have commands

Usage:
  program group [flags]

Commands:
  inner       be inside

Flags:
  -h, --help   help for group` + behind},
	}
	for _, test := range tests {
		var got strings.Builder
		root.SetOut(&got)
		code := Execute(t.Context(), root, append(test.args, "--help"), func(err error) { t.Error(err) })
		if diff := cmp.Diff(test.want, got.String()); diff != "" || code != 0 {
			t.Errorf("%q: exit code %d, (-want +got):\n%s", test.args, code, diff)
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

func TestStateDir(t *testing.T) {
	for _, tt := range []struct {
		env  string
		uid  int
		want string
	}{
		{"HOME=/home/ann", 1000, "/home/ann/.local/state/program"},
		{"HOME=/home/ann XDG_STATE_HOME=/x", 1000, "/x/program"},
		{"HOME=/home/ann XDG_STATE_HOME=x", 1000, "/home/ann/.local/state/program"},
		{"HOME=ann", 1000, ""},
		{"HOME=/root XDG_STATE_HOME=/x", 0, "/var/lib/program"},
		{"STATE_DIRECTORY=/var/lib/a:/var/lib/b", 0, "/var/lib/a"},
		{"", 1000, ""},
	} {
		if got := StateDir("program", strings.Fields(tt.env), tt.uid); got != tt.want {
			t.Errorf("%s, uid %d: %q, want %q", tt.env, tt.uid, got, tt.want)
		}
	}
}
