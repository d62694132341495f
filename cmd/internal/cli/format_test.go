package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "text"},
		{[]string{"--json"}, "json"},
		{[]string{"--format", "json"}, "json"},
		{[]string{"--json=false"}, "text"},
		{[]string{"--json", "--format", "text"}, "text"}, // the last counts
	} {
		var format string
		cmd := &cobra.Command{}
		AddFormat(cmd, &format)
		if err := cmd.ParseFlags(tt.args); err != nil || format != tt.want {
			t.Errorf("%q: %v, %q, want %q", tt.args, err, format, tt.want)
		}
	}
	if err := CheckFormat("yaml"); err == nil || err.Error() != `--format is "yaml", want text or json` {
		t.Errorf("got %v", err)
	}
}
