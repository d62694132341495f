// Package environment names the variables that decide which code later programs
// run, or which hosts they reach, and as whom: for the assessment of calls and for
// alerts.
package environment

import (
	"strings"
)

// maxName is longer than any name in the list. The prefixes are shorter.
const maxName = 64

// Loaded reports whether name is that of such a variable. It ends at the first "=", as
// it does for programs that are given name=value.
func Loaded(name string) bool {
	name, _, _ = strings.Cut(name[:min(len(name), maxName)], "=")
	name = strings.TrimSpace(name)
	upper := strings.ToUpper(name)
	switch upper {
	case "PATH", "ENV", "BASH_ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "ZDOTDIR",
		"SHELL", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "HOME", "XDG_CONFIG_HOME",
		"TERMINFO", "TMUX", "TMUX_TMPDIR", "GCONV_PATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS",
		"SSH_AUTH_SOCK", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND",
		"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_DIR", "GIT_WORK_TREE",
		"GIT_TEMPLATE_DIR", "GIT_SSL_NO_VERIFY",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONBREAKPOINT",
		"PERL5LIB", "PERLLIB", "PERL5OPT", "PERL5DB", "RUBYOPT", "RUBYLIB", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE",
		"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "ELECTRON_RUN_AS_NODE",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_HOME", "CLASSPATH", "MAVEN_OPTS", "GRADLE_OPTS",
		"GOFLAGS", "GOPROXY", "GOPATH", "GOROOT", "GOTOOLCHAIN", "CC", "CXX", "LD", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "CARGO_HOME",
		"MAKEFLAGS", "MFLAGS", "CFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "R_PROFILE", "R_PROFILE_USER", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
		"PHPRC", "PHP_INI_SCAN_DIR", "ERL_FLAGS", "DOTNET_STARTUP_HOOKS", "OPENSSL_CONF", "OPENSSL_MODULES", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "WGETRC", "INPUTRC", "SCREENRC", "VIMINIT", "EXINIT", "KUBECONFIG", "DOCKER_HOST",
		"DOCKER_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "ANSIBLE_CONFIG", "TF_CLI_CONFIG_FILE", "VAULT_ADDR", "CLAUDE_CONFIG_DIR":
		return true
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "AWS_", "BASH_FUNC_", "GIT_CONFIG", "NPM_CONFIG_", "COR_PROFILER", "CORECLR_", "AUDITPROXY_", "AUDITCOLLECTOR_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return strings.HasSuffix(upper, "_PROXY")
}

// LoadsCode reports whether an assignment makes later programs load a file that
// they would not, or decides how a later auditproxy or its client runs. It leaves out
// those variables of Loaded that ordinary commands set, such as PATH.
func LoadsCode(name, value string) bool {
	switch name {
	case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES":
		const most = 4096 // bytes that are read
		for file := range strings.FieldsFuncSeq(value[:min(len(value), most)], func(r rune) bool { return r == ':' || r == ' ' }) {
			// A name without a slash, or a file of the system, is a library that is installed.
			if strings.Contains(file, "/") && !strings.HasPrefix(file, "/usr/") && !strings.HasPrefix(file, "/lib") && !strings.HasPrefix(file, "/opt/") ||
				strings.Contains(file, "..") {
				return true
			}
		}
		return false
	case "PATH":
		first, _, _ := strings.Cut(value[:min(len(value), maxName)], ":")
		switch first {
		case ".", "/tmp", "/var/tmp", "/dev/shm": // anybody puts programs there
			return true
		}
		return false
	case "BASH_ENV", "PYTHONSTARTUP", "PERL5DB", "LUA_INIT", "DOTNET_STARTUP_HOOKS", "GCONV_PATH", "GIT_EXEC_PATH", "CLAUDE_CONFIG_DIR":
		return value != ""
	}
	return value != "" && (strings.HasPrefix(name, "AUDITPROXY_") || strings.HasPrefix(name, "AUDITCOLLECTOR_"))
}

// HidesHistory reports whether an assignment keeps a shell from recording what is
// typed.
func HidesHistory(name, value string) bool {
	switch name {
	case "HISTFILE":
		return value == "" || value == "/dev/null"
	case "HISTSIZE", "HISTFILESIZE", "SAVEHIST":
		return value == "0"
	case "HISTIGNORE":
		return value == "*"
	}
	return false
}

// Assigned reports whether text, lines or words of the form NAME=value, assigns to
// such a variable.
func Assigned(text string) bool {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ' ' || r == ';' || r == ',' || r == 0 }) {
		if name, _, ok := strings.Cut(line, "="); ok && Loaded(strings.TrimSuffix(name, "+")) {
			return true
		}
	}
	return false
}
