package environment

import (
	"strings"
	"testing"
)

func TestLoaded(t *testing.T) {
	for _, name := range []string{"PATH", "Path", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PROMPT_COMMAND", "BASH_ENV", "ENV", "BASH_FUNC_ls%%",
		"GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "PYTHONSTARTUP", "PYTHONPATH", "NODE_OPTIONS", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "HTTPS_PROXY", "https_proxy", "my_proxy", " PATH ", "PERL5OPT", "RUBYOPT",
		"JAVA_TOOL_OPTIONS", "ZDOTDIR", "AUDITPROXY_POLICY_MODE", "auditcollector_config", "CLAUDE_CONFIG_DIR", "EDITOR", "PAGER", "KUBECONFIG", "DOCKER_HOST",
		"PROMPT_COMMAND=touch x #", "PATH =", "BASH_FUNC_" + strings.Repeat("x", 100) + "%%"} {
		if !Loaded(name) {
			t.Errorf("%q is harmless", name)
		}
	}
	for _, name := range []string{"", "LANG", "TERM", "MYPATH", "PATHS", "XPATH", "ENVIRONMENT", "FOO", "AWSX", "COLUMNS", "NO_COLOR", "TZ", "LDFLAG",
		"A=PATH", "=PATH", strings.Repeat("x", 60) + "PATH"} {
		if Loaded(name) {
			t.Errorf("%q decides what runs", name)
		}
	}
	for text, want := range map[string]bool{"PATH=/x": true, "A=1\nLD_PRELOAD=/x": true, "PATH+=:/x": true, "A=PATH": false, "PATH": false, "": false, "A=1;ENV=/x": true} {
		if Assigned(text) != want {
			t.Errorf("Assigned(%q) = %v, want %v", text, !want, want)
		}
	}
}
