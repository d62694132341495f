package command

import (
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

// TestEdited checks texts that a line editor turns into another command.
func TestEdited(t *testing.T) {
	d := New(nil)
	for text, want := range map[string]bool{
		"x\rrm -rf /srv\x10\x0e\r":                            true,
		"\r\rx\r\rrm -rf /srv\x10\x0e\r":                      true,
		"m -rf /srv\x01\x1b:r\r":                              true,
		"m -rf /srv\x01\x0er\r":                               true,
		"m -rf /srv\x01\x14r\r":                               true,
		"rm -rf /srv\x15\x0c\x15\x19\r":                       true,
		"rm -rf /srv\x16\x00\r":                               true,
		"r\x1b[30m -rf /srv\r":                                true,
		"r\x1b[1;31m -rf /srv\r":                              true,
		"rm \x1b[15~ -rf /srv\r":                              true,
		"echo a\x1b]0;rm -rf /srv\r":                          true,
		"r\x1b m -rf /srv\r":                                  true,
		"r\x1bxm -rf /srv\r":                                  true,
		"rmx\x1b\x1b\x7f -rf /srv\r":                          true,
		"r\x1b\rm -rf /srv\r":                                 true,
		"echo rm -rf /srv\x01\x1b[3;5~\r":                     true,
		"rm -rf /srv #\x1b[2~\x15\r":                          true,
		"r x\x1b[5D\x08m -rf \r":                              true,
		"tmux send-keys r F1 'm -rf /srv' Enter":              true,
		"ihello\x1b\x1b:!rm -rf /srv\r":                       true,
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
		"ls\x0frm -rf /srv\r":                                 true,
		"rm -rf /srv \x16\x15\r":                              true,
		"\x1b[200~rm -rf /srv \x15\x1b[201~\r":                true,
		"mr\x14 -rf /srv\r":                                   true,
		"mr\x02\x14 -rf /srv\r":                               true,
		"echo rm -rf /srv\x01\x1bd\r":                         true,
		"r -rf /srv\x1bb\x1bb\x02\x02\x02m\r":                 false,
		"x-rf /srv\x1bb\x1bb\x1bb\x04rm \r":                   true,
		"#rm -rf /srv\r\x10\x01\x04\r":                        true,
		"#rm -rf /srv\rls\r\x1b[A\x1bOA\x1b[H\x04\r":          true,
		"#rm -rf /srv\rls\r\x10\x10\x0e\x01\x04\r":            false,
		"rm -rf /srv \x17\x17\x17\x19\r":                      true,
		"rm \x0c-rf\x13\x11\x1e /srv\r":                       true,
		"sleep 9\x1arm -rf /srv\r":                            true,
		"iHello\x1b:!rm -rf /srv\r":                           true,
		"rm \x1b:-rf /srv\r":                                  true,
		"r  \x1b\\m -rf /srv\r":                               true,
		"tmux send-keys 'ls' C-o 'rm -rf /srv' Enter":         true,
		"tmux send-keys 'ls' ^M 'rm -rf /srv' ^M":             true,
		"tmux send-keys 'echo rm -rf /srv' C-a M-d Enter":     true,
		"tmux send-keys 0x72 0x6d Space -rf Space /srv Enter": true,
		"tmux send-keys 'rm -rf /srv' C-[ BSpace Enter":       true,
		"tmux send-keys 'rm -rf /srv' C-2 C-6 Enter":          true,
		"tmux send-keys 'rm -rf /srv x' M-BSpace C-J":         true,
		"tmux send-keys 'rm -rf /srv' C-U Enter":              false,
		"screen -S x -X stuff 'rn^Hm'":                        false,
		"rm -rf /srv\x01echo \x01\x0b\x19\r":                  false,
		"make test\r\x10\r":                                   false,
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

// TestUnsure checks texts with keys whose effect is not followed.
func TestUnsure(t *testing.T) {
	d := New(nil)
	for text, want := range map[string]bool{
		"rm -rf /srv\x15\x1f\r":                                   true,
		"RM -RF /SRV\x1bb\x1bb\x1bl\r":                            true,
		"echo rm -rf /srv\x1b0dw\r":                               true,
		"echo \x18\x7frm -rf /srv\r":                              true,
		"rm -rf /srv\x15ls\x15\x19\x1by\r":                        true,
		"\x12git push\r":                                          true,
		"x\x1a rm\r":                                              true,
		"echo \x07rm -rf /srv\r":                                  true,
		"#rm\rz\r\x10\x10\x01\x04\x0e\x10\r":                      true,
		"echo x\r#rm\r\x10\x10\x0f\x01\x04\r":                     true,
		"#rm -rf /srv\r\x1b[5~\x01\x04\r":                         true,
		"tmux send-keys '#rm -rf /srv' Enter PageUp C-a DC Enter": true,
		"rm -rf /srv #\x11\x15\r":                                 true,
		"rm\x1b[1;5D\r":                                           true,
		"\x1b:wq\r":                                               false,
		"\x1bdd":                                                  false,
		"ihello\x1b:wq\r":                                         false,
		"\x12make\r":                                              false,
		"\x18\x05":                                                false,
		"q\x1b\r":                                                 false,
		"\x1b[A\r":                                                false,
		"cd a\x1b\x7fls\r":                                        false,
		"\x1b[200~ls -la\n\x1b[201~\r":                            false,
		"\x0cls -la\r":                                            false,
		"\x1agit status\r":                                        false,
		"tmux send-keys 'rm -rf /srv' C-u C-/ Enter":              true,
		"tmux send-keys 'rm -rf /srv' C-u C-- Enter":              true,
		"tmux send-keys 'rm -rf /srv' C-u C-7 Enter":              true,
		"tmux send-keys 'rm -rf /srv' C-u ^/ Enter":               true,
		"tmux send-keys 'rm -rf /srv#' C-Left Enter":              true,
		"tmux send-keys 'rm -rf /srv#' M-Left Enter":              true,
		"tmux send-keys 'rm -rf /srv' C-6 C-Space C-u":            false,
		"tmux send-keys -t %1 Escape :wq Enter":                   false,
		"tmux send-keys -t %1 Up Enter":                           false,
		"tmux send-keys -t %1 F5 PageUp BTab C-x":                 false,
	} {
		if got := does(d, text)&detector.Opaque != 0; got != want {
			t.Errorf("%q: opaque is %v, want %v", text, got, want)
		}
	}
}
