package command

import (
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

// TestAuditTampering checks what ends or changes this program, and that looking at it, or
// developing it, does not count.
func TestAuditTampering(t *testing.T) {
	d := New(nil, "/home/u/rules/policy.yaml", "~/rules/policy.yaml", "/srv/spool")
	for text, want := range map[string]bool{
		"pkill auditproxy":                                                  true,
		"pkill -STOP -f auditproxy":                                         true,
		"killall -9 auditcollector":                                         true,
		"kill $(pgrep auditproxy)":                                          true,
		"kill -STOP `pidof auditproxy`":                                     true,
		"p=$(pidof auditproxy); kill -19 $p":                                true,
		"pgrep -f auditproxy | xargs kill":                                  true,
		"ps aux | grep [a]uditproxy | awk '{print $2}' | xargs -r kill":     true,
		"ps aux | awk '/auditproxy/ {print $2}' | xargs kill":               true,
		"for p in $(pgrep auditproxy); do kill $p; done":                    true,
		"gdb -p $(pidof auditproxy) -batch -ex 'call exit(0)'":              true,
		"systemctl --user stop auditcollector":                              true,
		"systemctl mask auditcollector-local.service":                       true,
		"auditproxy unwrap":                                                 true,
		"auditproxy unwrap ~/.cursor/mcp.json":                              true,
		"auditproxy approvals approve 01a2 --always":                        true,
		"yes | auditproxy approvals -f":                                     true,
		"sudo auditcollector erase --user u":                                true,
		"auditcollector retain":                                             true,
		"rm -rf ~/.local/state/auditproxy":                                  true,
		"rm -r \"$HOME/.config/auditproxy\"":                                true,
		"mv ~/.local/state/auditproxy /tmp/x":                               true,
		"chmod 000 /var/lib/auditproxy/sessions":                            true,
		"mount -t tmpfs none ~/.local/state/auditproxy":                     true,
		"echo 'policy: {mode: observe}' > ~/.config/auditproxy/config.yaml": true,
		"sed -i s/deny/allow/ /etc/auditproxy/config.yaml":                  true,
		"cp x /usr/local/bin/auditproxy":                                    true,
		"chmod -x ~/.local/bin/auditproxy":                                  true,
		"sed -i 's/enforce/observe/' ~/rules/policy.yaml":                   true,
		"tee /home/u/rules/../rules/policy.yaml < x":                        true,
		"chattr +i /srv/spool":                                              true,

		"pkill -0 auditproxy":                              false,
		"kill -l":                                          false,
		"kill $(pgrep nginx)":                              false,
		"pgrep -a auditproxy":                              false,
		"pgrep auditproxy | xargs ps -o etime":             false,
		"ps aux | grep auditproxy | grep -v grep":          false,
		"systemctl status auditcollector":                  false,
		"systemctl restart auditcollector":                 false,
		"systemctl stop nginx":                             false,
		"auditproxy wrap --dry-run":                        false,
		"auditproxy unwrap --dry-run":                      false,
		"auditproxy unwrap --help":                         false,
		"auditproxy approvals":                             false,
		"auditproxy approvals deny 01a2":                   false,
		"auditproxy log -f --tool kill_pane":               false,
		"auditproxy --spool-dir /tmp/s -- rm -rf /tmp/x":   false,
		"auditcollector erase --dry-run --user u":          false,
		"cat ~/.config/auditproxy/config.yaml":             false,
		"ls -la ~/.local/state/auditproxy":                 false,
		"cp ~/.config/auditproxy/config.yaml /tmp/x":       false,
		"rm -rf ~/src/auditproxy/bin":                      false,
		"rm -f bin/auditproxy":                             false,
		"cd ~/src/auditproxy && chmod +x .ci/test.sh":      false,
		"echo x > ~/src/auditproxy/deploy/policies/x.yaml": false,
		"sed -i s/a/b/ ~/rules/policy.yaml.example":        false,
		"cat /srv/spool/key":                               false,
		"git commit -m 'auditproxy: kill the child'":       false,
		"why does the auditproxy not kill it":              false,
	} {
		if got := does(d, text)&detector.AuditTampering != 0; got != want {
			t.Errorf("%q: audit_tampering is %v, want %v", text, got, want)
		}
	}
}

// TestLoadedCode checks that a variable with which later programs load code is found in
// commands too.
func TestLoadedCode(t *testing.T) {
	d := New(nil)
	for text, want := range map[string]detector.Set{
		"LD_PRELOAD=/tmp/e.so ls":                     detector.EnvironmentName,
		"export LD_PRELOAD=$HOME/e.so":                detector.EnvironmentName,
		"LD_PRELOAD=/usr/lib/../../tmp/e.so ls":       detector.EnvironmentName,
		"env BASH_ENV=/tmp/x bash -c true":            detector.EnvironmentName,
		"export PYTHONSTARTUP=/tmp/x":                 detector.EnvironmentName,
		"export AUDITPROXY_POLICY_MODE=observe":       detector.EnvironmentName,
		"CLAUDE_CONFIG_DIR=/tmp/c claude":             detector.EnvironmentName,
		"LD_PRELOAD=/usr/lib/libjemalloc.so ./server": 0,
		"LD_PRELOAD=libfaketime.so.1 date":            0,
		"LD_PRELOAD= ls":                              0,
		"export PATH=$HOME/bin:$PATH EDITOR=vim":      0,
		"AWS_PROFILE=dev aws s3 ls":                   0,
	} {
		if got := does(d, text); got != want {
			t.Errorf("%q: got %v, want %v", text, got.Words(), want.Words())
		}
	}
}
