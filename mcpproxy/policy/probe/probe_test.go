package probe

import "testing"

// first returns the first text that is found, and its remedy.
func first(found []Text) (value, remedy string) {
	if len(found) == 0 {
		return "", ""
	}
	return found[0].Value, found[0].Remedy
}

// TestRequired has patterns that match more than they seem to, and such as do not.
func TestRequired(t *testing.T) {
	const begin, dot = "begin it with ^", `write \. for a dot`
	for pattern, want := range map[string][2]string{
		`/srv/data/`:                             {"/tmp/srv/data/", begin},
		`(?i)/srv/data/[a-z]+$`:                  {"/tmp/srv/data/a", begin},
		`^/srv/data/|/opt/`:                      {"/srv/data/../../x", traversal},
		`^/srv/`:                                 {"/srv/../x", traversal},
		`^/srv/data/[a-z]+`:                      {"/srv/data/a/../../x", traversal},
		`^/srv/data/[a-z/]+$`:                    {},
		`^/srv/data(?:/[a-z]+)*$`:                {},
		`(?m)^ls [a-z]+$`:                        {"ls a\nx.example", "leave out (?m)"},
		`^ls [a-z]+$`:                            {},
		`^https://api\.example\.com`:             {"https://api.example.com.x.example/", "end the host with /"},
		`^https://api\.example\.com:`:            {},
		`^https://api\.example\.com/`:            {},
		`^https://api\.example\.com(?:/|$)`:      {},
		`https://api\.example\.com/`:             {"ftp://x.example/?https://api.example.com/", begin},
		`^https://.*\.example\.com/`:             {"https://x.example/.example.com/", "write [a-z0-9.-]* for a part of the host"},
		`^https://[^/]+\.example\.com/`:          {"https://x.example?.example.com/", "write [a-z0-9.-]* for a part of the host"},
		`^https://[^/?#]+\.example\.com/`:        {},
		`^https://[a-z0-9.-]*\.example\.com/`:    {},
		`^https://api.example.com/`:              {"https://apixexamplexcom/", dot},
		`^https?://(?:a|b)\.example\.com/v1/.*$`: {},
		`example\.com$`:                          {"xexample.com", `begin it with ^, or with (^|\.) for all below it`},
		`example.com$`:                           {"xexample.com", `begin it with ^, or with (^|\.) for all below it`},
		`^example\.com`:                          {"example.com.x.example", "end it with $"},
		`(?:^|\.)example\.com$`:                  {},
		`^[a-z]+$`:                               {},
		`SELECT`:                                 {},
		`(`:                                      {},
		``:                                       {},
		`^/`:                                     {},
	} {
		value, remedy := first(Required("x", pattern))
		if value != want[0] || remedy != want[1] {
			t.Errorf("%q: %q, %q, want %q", pattern, value, remedy, want)
		}
	}
	for _, tt := range []struct{ argument, pattern, want string }{
		{"command", `^git `, "git ; rm x"}, {"sql", `(?i)^select`, "select; drop table x"}, {"sql", `(?i)^\s*select\b[^;]*$`, ""}, {"command", `^(ls|cat)( [a-z./]+)*$`, ""}, {"command", `^ls [^;|&$()\n]*$`, ""}, {"message", `^fix: `, ""},
		{"path", `^src/`, "src/../../x"}, {"outputPath", `^C:\\Data\\`, `C:\Data\/../../x`}, {"branch", `^feature/`, ""}, {"path", `\.md$`, ""}, {"path", `^[a-z]+/[a-z]+$`, ""},
		{"path", `^/srv/a$|/srv/b$`, "/tmp/srv/b"}, {"to", `@example\.com$`, "x@x.example, y@example.com"}, {"to", `^[^@]+@example\.com$`, ""},
	} {
		if value, _ := first(Required(tt.argument, tt.pattern)); value != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.argument, tt.pattern, value, tt.want)
		}
	}
	for _, tt := range []struct{ argument, text, want string }{
		{"url", "example.com", "example.com.x.example"}, {"url", "https://example.com/", "ftp://x.example/?https://example.com/"}, {"path", "/srv/logs/", "/tmp/srv/logs/"},
		{"command", "git status", "git status; rm x"}, {"tags", "approved", ""}, {"path", "a+b", ""}, {"note", "", ""},
	} {
		if value, remedy := first(Contained(tt.argument, tt.text)); value != tt.want || (remedy == "use op regex, from ^ to $") != (tt.want != "") {
			t.Errorf("%s contains %q: %q, %q, want %q", tt.argument, tt.text, value, remedy, tt.want)
		}
	}
	if found := Required("path", `^/srv/data`); len(found) != 2 || found[1] != (Text{"/srv/data-x/y", "end the directory with /", ""}) {
		t.Errorf("a directory beside: %q", found)
	}
}

// TestDenied has conditions that other spellings pass.
func TestDenied(t *testing.T) {
	for _, tt := range []struct {
		value     string
		isPattern bool
		want      string
	}{
		{`DROP.*TABLE`, true, "DROP\nTABLE"},
		{`(?s)drop.*table`, true, ""},
		{`DROP TABLE`, true, "drop table"},
		{`DROP TABLE`, false, "drop table"},
		{`ID`, false, ""},
		{`/etc/passwd`, false, "/etc//passwd"},
		{`^/srv/secret/`, true, "/srv//secret/"},
		{`^/srv/[a-z]+`, true, ""},
		{`/`, false, ""},
		{`169\.254\.169\.254`, true, "2852039166"},
		{`http://127.0.0.1/`, false, "http://2130706433/"},
		{`10.2`, false, ""},
		{`ann`, false, ""},
		{`(`, true, ""},
	} {
		if value, _ := first(Denied("x", tt.value, tt.isPattern)); value != tt.want {
			t.Errorf("%q: %q, want %q", tt.value, value, tt.want)
		}
	}
	for _, tt := range []struct {
		argument, value string
		isPattern       bool
		want, detector  string
	}{
		{"command", `rm -rf`, false, `r\m -rf`, "opaque"},
		{"sql", `(?i)drop\s+table`, true, "drop/**/table", "sql_unfiltered"},
		{"query", `delete from`, false, "delete/**/from", "sql_unfiltered"},
		{"sql", `delete`, false, "", ""},
		{"query", `jane doe`, false, "", ""},
	} {
		found := append(Denied(tt.argument, tt.value, tt.isPattern), Text{})
		if found[0].Value != tt.want || found[0].Detector != tt.detector {
			t.Errorf("%s %q: %q, want %q, which %q finds", tt.argument, tt.value, found[0], tt.want, tt.detector)
		}
	}
}
