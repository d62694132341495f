package command

import (
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

// TestEdited checks texts that a line editor turns into another command.
func TestEdited(t *testing.T) {
	d := New(nil)
	for text, want := range map[string]bool{
		"rn\x7fm -rf /srv\r":                                  true,
		"r\x1b[Cm -rf /srv\r":                                 true,
		" -rf /srv\x01rm\r":                                   true,
		"m -rf /srv\x1b[Hr\r":                                 true,
		"xm -rf /srv\x01\x04r\r":                              true,
		"rx\x1b[D\x0bm -rf /srv\r":                            true,
		"echo \x1b[H\x0b\x1bOHrm -rf /srv\r":                  true,
		"m -rf /srv\x15r\x19\r":                               true,
		"foo \x17rm -rf /srv\r":                               true,
		"rXm -rf /srv" + "\x01\x06\x1b[3~\r":                  true,
		"rmé\x7f -rf /srv\r":                                  true,
		"é€m -rf /srv\x01\x04\x04r\r":                         true,
		"mé -rf /srv\x01r\x06\x04\r":                          true,
		"€x -rf /srv\x1b[H\x06\x7frm\x04\r":                   true,
		"wtype 'rm -rf /srv' -k Return":                       true,
		"wtype -d 100 'rm -rf /srv\n'":                        true,
		"xdotool type --delay 5 'rm -rf /srv'":                true,
		"tmux send-keys r Right m Space -rf Space /srv Enter": true,
		"tmux send-keys m ' -rf /srv' Home r Enter":           true,
		"screen -S x -X stuff 'rn^Hm'":                        false,
		"\x1b:wq\r":                                           false,
		"\x1bdd":                                              false,
		"\x1b[A\r":                                            false,
		"ls\x01#\r":                                           false,
		"rm -rf /srv\x15ls\r":                                 false,
		"ls -la\x1b[D\x1b[D\x1b[C\r":                          false,
	} {
		if got := does(d, text)&detector.RecursiveDelete != 0; got != want {
			t.Errorf("%q: recursive_delete is %v, want %v", text, got, want)
		}
	}
}
