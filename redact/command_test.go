package redact_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"auditproxy/redact"
	"auditproxy/schemas/jsontext"
)

// TestCommandLines hides the secret in each, alone, between other commands and
// in a string in a string, and nothing around it.
func TestCommandLines(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range redact.CommandLines {
		for _, around := range []string{"%s", "cd /srv\n%s\nls -l", "true; %s"} {
			in := fmt.Sprintf(around, line)
			got := clean(r, in)
			if strings.Contains(got, "hunter2") || strings.Contains(got, "YW5uOmh1bnRlcjI") || !strings.Contains(got, "[redacted len=") {
				t.Errorf("AppendText(%q) = %q", in, got)
				continue
			}
			if n := strings.Count(got, "[redacted"); n > 1 {
				t.Errorf("AppendText(%q) = %q: hides %d", in, got, n)
			}
			if again := clean(r, string(r.AppendText(nil, []byte(in)))); again != got {
				t.Errorf("AppendText(%q) = %q, then %q", in, got, again)
			}
		}
		if in := fmt.Sprintf(`{"a":%q}`, line); strings.Contains(clean(r, in), "hunter2") {
			t.Errorf("AppendText(%s) = %s", in, clean(r, in))
		}
	}
}

// typedLines returns the lines of a file of texts that are not comments.
func typedLines(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for _, line := range lines(t, path) {
		all = append(all, strings.NewReplacer("¶", "\n", "⇥", "\t", "¤", "\r\n", "␛", "\x1b").Replace(line))
	}
	return all
}

// TestTypedSecrets hides the secrets that users of all sorts of programs type,
// alone and between other lines.
func TestTypedSecrets(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range typedLines(t, "testdata/typed.txt") {
		for _, around := range []string{"%s", "cd /srv\n%s\nls -l"} {
			in := fmt.Sprintf(around, line)
			if got := clean(r, in); strings.Contains(got, "hunter2") || strings.Contains(got, "correct horse") {
				t.Errorf("AppendText(%q) = %q", in, got)
			}
		}
	}
}

// TestSecretsOfEveryKind hides what stands for a secret in each line, in the
// clear keys of a call as in a text, whether it looks like a password, a word
// or a token.
func TestSecretsOfEveryKind(t *testing.T) {
	r := newRedactor(t, redact.Config{ClearNames: []string{"keys"}})
	for _, line := range typedLines(t, "testdata/secrets.txt") {
		for _, secret := range []string{"hunter2", "swordfish", "K9x-Lm_4.Qw"} {
			for _, around := range []string{"%s", "cd /srv\n%s\nls -l"} {
				in := fmt.Sprintf(around, strings.ReplaceAll(line, "¿", secret))
				got := r.AppendText(nil, []byte(in))
				if bytes.Contains(got, []byte(secret)) {
					t.Errorf("AppendText(%q) = %q", in, got)
				}
				if again := r.AppendText(nil, got); !bytes.Equal(again, got) {
					t.Errorf("AppendText(%q) = %q, then %q", in, got, again)
				}
				args := append(jsontext.AppendQuote([]byte(`{"keys":`), in), `,"pane_id":"%1"}`...)
				if got, _ := r.AppendArgs(nil, args); strings.Contains(string(got), secret) {
					t.Errorf("AppendArgs(%s) = %s", args, got)
				}
			}
		}
	}
}

// TestLongNumbersAreNoPorts hides a number behind a user that is too long for a port.
func TestLongNumbersAreNoPorts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range []string{
		`btoa("ann:%s")`, "tool --user ann -p %s", `{"args":["tool","-u","ann","-p","%s"]}`, "ann * %s *",
		"cache_peer h parent 3128 0 no-query login=ann:%s", `BUNDLE_GEMS__X__COM="ann:%s"`,
	} {
		if in := fmt.Sprintf(line, number); strings.Contains(clean(r, in), number) {
			t.Errorf("AppendText(%s) = %s", in, clean(r, in))
		}
		if in := fmt.Sprintf(line, "8080"); clean(r, in) != in {
			t.Errorf("AppendText(%s) = %s", in, clean(r, in))
		}
	}
}

// TestOptionsAreNoValues leaves an option behind one that wants a secret in a list, and hides
// what that one has, also if it starts like an option.
func TestOptionsAreNoValues(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, want string }{
		{`{"a":["--token","--verbose"]}`, `{"a":["--token","--verbose"]}`},
		{`{"a":["x","--token","--dry-run","y"]}`, `{"a":["x","--token","--dry-run","y"]}`},
		{`{"a":["x","--init-pin","--pin","4711"]}`, `{"a":["x","--init-pin","--pin",{"len":4,"hmac":""}]}`},
		{`{"a":["--token","--Xk9"]}`, `{"a":["--token",{"len":5,"hmac":""}]}`},
		{`{"a":["--token","-v"]}`, `{"a":["--token",{"len":2,"hmac":""}]}`},
	} {
		if got, _ := r.AppendArgs(nil, []byte(tt.in)); digests(got) != tt.want {
			t.Errorf("AppendArgs(%s) = %s, want %s", tt.in, digests(got), tt.want)
		}
	}
}

// TestTypedArguments hides the secrets in arguments as clients send them.
func TestTypedArguments(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range lines(t, "testdata/typed.jsonl") {
		got, _ := r.AppendArgs(nil, []byte(line))
		if strings.Contains(string(got), "hunter2") {
			t.Errorf("AppendArgs(%s) = %s", line, got)
		}
		checkSummary(t, got)
	}
}

// TestReadableTexts leaves text unchanged that only seems to hold a secret.
func TestReadableTexts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range typedLines(t, "testdata/readable.txt") {
		for _, around := range []string{"%s", "cd /srv\n%s\nls -l"} {
			in := fmt.Sprintf(around, line)
			if got := clean(r, in); got != in {
				t.Errorf("AppendText(%q) = %q", in, got)
			}
		}
	}
}

// TestBrokenTexts cuts each text at each byte, and reads both parts. If the redactor
// fails, it hides all arguments: an agent could hide what it does that way.
func TestBrokenTexts(t *testing.T) {
	r := newRedactor(t, redact.Config{ClearNames: []string{"keys"}})
	all := slices.Clone(redact.CommandLines)
	for _, file := range []string{"secrets", "typed", "readable"} {
		all = append(all, typedLines(t, "testdata/"+file+".txt")...)
	}
	for _, line := range all {
		for i := range len(line) + 1 {
			broken := []string{line[:i], "cd /srv\n" + line[:i], line[i:] + "\n"}
			if line[0] == '{' || line[0] == '[' {
				broken = append(broken, line[:i]+"}", line[:i]+"]", line[:i]+"]}")
			}
			for _, in := range broken {
				args := append(jsontext.AppendQuote([]byte(`{"keys":`), in), '}')
				if _, flags := r.AppendArgs(nil, args); flags&redact.Failed != 0 {
					t.Errorf("AppendArgs(%s) failed", args)
				}
			}
		}
	}
}

// TestHereStrings reads here-strings in here-strings once: read once for each,
// they would take half an hour.
func TestHereStrings(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	in := "sudo -S ls " + strings.Repeat("a<<<", 2<<20/4)
	if got := clean(r, in); !strings.Contains(got, "ls a<<<[redacted len=2097") {
		t.Errorf("AppendText = %.80q", got)
	}
}

// TestPromptsInPrompts has a line of nothing but prompts: read one in the other, they would
// take more stack than a program has.
func TestPromptsInPrompts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, unit := range []string{"> ", "\u2570\u2500", "<a>", "$ $(", "[["} {
		in := "x\n" + strings.Repeat(unit, 16<<20/len(unit))
		if got := r.AppendText(nil, []byte(in)); len(got) > 4096 {
			t.Errorf("%q: %d bytes", unit, len(got))
		}
	}
}

// TestSecretsBesideTheirNames has arguments in which something other than its
// own member's name marks a value as a secret.
func TestSecretsBesideTheirNames(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	const digest = `{"len":7,"hmac":""}`
	for _, tt := range []struct{ in, want string }{
		{`{"data":[112,119,61,104,117,110,116,101,114,50],"b":[[112, 119, 61, 104, 117, 110, 116, 101, 114, 50]]}`, `{"data":{"len":39,"hmac":""},"b":[{"len":39,"hmac":""}]}`},
		{`{"data":[112,119,32,104,117,110,116,101,114,50],"b":[1,2,3],"c":[256,119,61,104,117,110,116,101,114,50],"d":[]}`, `{"data":[112,119,32,104,117,110,116,101,114,50],"b":[1,2,3],"c":[256,119,61,104,117,110,116,101,114,50],"d":[]}`},
		{`{"h":["X-Api-Key","hunter2"]}`, `{"h":["X-Api-Key",` + digest + `]}`},
		{`{"h":[["Accept","x"],["Authorization","hunter2"]]}`, `{"h":[["Accept","x"],["Authorization",` + digest + `]]}`},
		{`{"h":["password",["hunter2"]]}`, `{"h":["password",{"len":11,"hmac":""}]}`},
		{`{"e":{"name":"DB_PASSWORD","data":"hunter2"}}`, `{"e":{"name":"DB_PASSWORD","data":` + digest + `}}`},
		{`{"e":{"key":"PASSWORD","val":"hunter2"}}`, `{"e":{"key":"PASSWORD","val":` + digest + `}}`},
		{`{"e":[{"v":"hunter2","k":"api-key"}]}`, `{"e":[{"v":` + digest + `,"k":"api-key"}]}`},
		{`{"e":{"name":"token","type":"text","value":"hunter2","x":1}}`, `{"e":{"name":"token","type":"text","value":` + digest + `,"x":1}}`},
		{`{"e":{"name":"token","content":{"a":["hunter2"]},"x":1}}`, `{"e":{"name":"token","content":{"len":17,"hmac":""},"x":1}}`},
		{`{"e":{"header":"x-api-key","whatever":"hunter2"}}`, `{"e":{"header":"x-api-key","whatever":` + digest + `}}`},
		{`{"e":{"name":"pass\u0077ord","val":"hunter2"}}`, `{"e":{"name":"password","val":` + digest + `}}`},
		{`{"e":{"name":"a","name":"password","val":"x","val":"hunter2"}}`, `{"e":{"name":"password","val":` + digest + `}}`},
		{`{"kind":"Secret","metadata":{"name":"db"},"data":{"a":"hunter2"},"stringData":{"b":"hunter2"}}`,
			`{"kind":"Secret","metadata":{"name":"db"},"data":{"len":15,"hmac":""},"stringData":{"len":15,"hmac":""}}`},
		{`{"lines":["# key","-----BEGIN PRIVATE KEY-----","hunter2","hunter2\n","-----END PRIVATE KEY-----","-v","ann"]}`,
			`{"lines":["# key","[redacted len=27 hmac=]",` + digest + `,{"len":8,"hmac":""},{"len":25,"hmac":""},"-v","ann"]}`},
		{`{"lines":["  -----BEGIN RSA PRIVATE KEY-----","  hunter2"]}`, `{"lines":["  [redacted len=31 hmac=]",{"len":9,"hmac":""}]}`},
		{`{"args":["mysql","-phunter2","db"]}`, `{"args":["mysql","-p[redacted len=7 hmac=]","db"]}`},
		{`{"args":["curl","-u","ann:hunter2","-v"]}`, `{"args":["curl","-u","ann:[redacted len=7 hmac=]","-v"]}`},
		{`{"args":["/usr/bin/sshpass","-p","hunter2","ssh","-p","22","h"]}`, `{"args":["/usr/bin/sshpass","-p",` + digest + `,"ssh","-p","22","h"]}`},
		{`{"args":["docker","login","-p","hunter2"]}`, `{"args":["docker","login","-p",` + digest + `]}`},
		{`{"args":["docker","run","-p","80:80"]}`, `{"args":["docker","run","-p","80:80"]}`},
		{`{"cmd":"mysql","args":["-phunter2"]}`, `{"cmd":"mysql","args":["-p[redacted len=7 hmac=]"]}`},
		{`{"cmd":"mysql","arguments":"-uroot -phunter2 shop"}`, `{"cmd":"mysql","arguments":"-uroot -p[redacted len=7 hmac=] shop"}`},
		{`{"args":"-u ann:hunter2 https://h","retry":"-u 3:4","program":"curl"}`, `{"args":"-u ann:[redacted len=7 hmac=] https://h","retry":"-u 3:4","program":"curl"}`},
		{`{"sql":"UPDATE users SET password = ? WHERE id = ?","params":["hunter2",1]}`, `{"sql":"UPDATE users SET password = ? WHERE id = ?","params":{"len":13,"hmac":""}}`},
		{`{"params":["ann","hunter2"],"query":"INSERT INTO t (name, token) VALUES ($1, $2)"}`, `{"params":{"len":17,"hmac":""},"query":"INSERT INTO t (name, token) VALUES ($1, $2)"}`},
		{`{"sql":"SELECT 1 FROM t WHERE \"api_key\" = %s","args":["hunter2"]}`, `{"sql":"SELECT 1 FROM t WHERE \"api_key\" = %s","args":{"len":11,"hmac":""}}`},
		{`{"sql":"INSERT INTO t (name, token) VALUES (:n, :t)","args":{"n":"ann","t":"hunter2"}}`, `{"sql":"INSERT INTO t (name, token) VALUES (:n, :t)","args":{"len":25,"hmac":""}}`},
		{`{"sql":"UPDATE t SET password = crypt($1, gen_salt('bf'))","params":["hunter2"]}`, `{"sql":"UPDATE t SET password = crypt($1, gen_salt('bf'))","params":{"len":11,"hmac":""}}`},
		{`{"sql":"SELECT 1 FROM t WHERE token IN (?)","params":["hunter2"]}`, `{"sql":"SELECT 1 FROM t WHERE token IN (?)","params":{"len":11,"hmac":""}}`},
		{`{"query":"mutation($p: String!) { login(password: $p) { ok } }","variables":{"p":"hunter2"}}`, `{"query":"mutation($p: String!) { login(password: $p) { ok } }","variables":{"len":15,"hmac":""}}`},
		{`{"query":"query($id: ID!) { user(id: $id) { tokens } }","variables":{"id":"7"}}`, `{"query":"query($id: ID!) { user(id: $id) { tokens } }","variables":{"id":"7"}}`},
		{`{"fields":["name","password"],"params":{"q":"ann"}}`, `{"fields":["name","password"],"params":{"q":"ann"}}`},
		{`{"sql":"SELECT token_count FROM t WHERE id = ? AND name = ?","params":["ann",1]}`, `{"sql":"SELECT token_count FROM t WHERE id = ? AND name = ?","params":["ann",1]}`},
		{`{"sql":"SELECT password FROM t WHERE id = ?","params":[1]}`, `{"sql":"SELECT password FROM t WHERE id = ?","params":[1]}`},
		{`{"columns":["name","password"],"rows":[["ann","hunter2"]]}`, `{"columns":["name","password"],"rows":{"len":19,"hmac":""}}`},
		{`{"columns":["name","age"],"rows":[["ann","7"]]}`, `{"columns":["name","age"],"rows":[["ann","7"]]}`},
		{`{"values":[["name","password"],["ann","hunter2"],["bob","hunter2"]]}`, `{"values":[["name","password"],["ann",` + digest + `],["bob",` + digest + `]]}`},
		{`{"values":[["password","name","age"],["hunter2","ann",7],[["x"],["ann"]]]}`, `{"values":[["password","name","age"],[` + digest + `,"ann",7],[{"len":5,"hmac":""},["ann"]]]}`},
		{`{"path":"secret/data/db","data":{"a":"hunter2"},"limit":5}`, `{"path":"secret/data/db","data":{"len":15,"hmac":""},"limit":5}`},
		{`{"body":"hunter2","file_path":"/home/ann/.ssh/id_ed25519"}`, `{"body":` + digest + `,"file_path":"/home/ann/.ssh/id_ed25519"}`},
		{`{"path":"docs/password.md","body":"how to"}`, `{"path":"docs/password.md","body":"how to"}`},
		{`{"args":["config","set","token","hunter2"]}`, `{"args":["config","set","token",` + digest + `]}`},
		{`{"args":["set","name","ann"]}`, `{"args":["set","name","ann"]}`},
		{`{"question":"Password:","response":"hunter2"}`, `{"question":"Password:","response":` + digest + `}`},
		{`{"values":[["a","password"],[["x","y"],"hunter2"]]}`, `{"values":[["a","password"],[["x","y"],` + digest + `]]}`},
		{`{"values":[["a","password"],"--password",["x"]],"more":["q","r"]}`, `{"values":[["a","password"],"--password",{"len":5,"hmac":""}],"more":["q","r"]}`},
		{`{"h":[["password","hunter2"],["user","ann"]],"i":[["password","one"],["user","ann"]]}`, `{"h":[["password",` + digest + `],["user","ann"]],"i":[["password",{"len":3,"hmac":""}],["user","ann"]]}`},
		{`{"sql":"SELECT token ? 'a' FROM t WHERE id = $1","params":[1]}`, `{"sql":"SELECT token ? 'a' FROM t WHERE id = $1","params":[1]}`},
		{`{"e":{"name":"token","target":"hunter2"},"f":{"name":"token","query":"hunter2"}}`, `{"e":{"name":"token","target":` + digest + `},"f":{"name":"token","query":` + digest + `}}`},
		{`{"SQL":"UPDATE t SET password = :new","Params":["hunter2"],"e":{"Columns":["name","password"],"Rows":[["a","hunter2"]]}}`, `{"SQL":"UPDATE t SET password = :new","Params":{"len":11,"hmac":""},"e":{"Columns":["name","password"],"Rows":{"len":17,"hmac":""}}}`},
		{`{"cmd":"mysql","ARGS":"-phunter2"}`, `{"cmd":"mysql","ARGS":"-p[redacted len=7 hmac=]"}`},
		{`{"command":"redis-cli","args":["-a","hunter2"]}`, `{"command":{"len":9,"hmac":""},"args":["-a",` + digest + `]}`},
		{`{"args":["sh","-c","mysql -phunter2"]}`, `{"args":["sh","-c","mysql -p[redacted len=7 hmac=]"]}`},
		{`{"cmd":"pass show x","stdout":"hunter2","rc":0}`, `{"cmd":"pass show x","stdout":` + digest + `,"rc":0}`},
		{`{"output":["hunter2"],"cmd":["bash","-lc","op read op://a/b/c"]}`, `{"output":{"len":11,"hmac":""},"cmd":["bash","-lc","op read op://a/b/c"]}`},
		{`{"e":{"command":"echo $DB_PASSWORD","output":"hunter2"}}`, `{"e":{"command":{"len":17,"hmac":""},"output":` + digest + `}}`},
		{`{"lines":["ann@h:~$ pass show x","hunter2","","ann@h:~$ ls","a"]}`, `{"lines":["ann@h:~$ pass show x",` + digest + `,"","ann@h:~$ ls","a"]}`},
		{`{"lines":["$ ls","a","# b","> c"],"other":["a","b"]}`, `{"lines":["$ ls","a","# b","> c"],"other":["a","b"]}`},
		{`{"cmd":["git","log"],"output":"a1b2c3"}`, `{"cmd":["git","log"],"output":"a1b2c3"}`},
		{`{"cmd":"pass ls","stdout":"mail"}`, `{"cmd":"pass ls","stdout":"mail"}`},
		{`{"args":["--dbpass","hunter2"]}`, `{"args":["--dbpass",` + digest + `]}`},
		{`{"set":["auth.password=hunter2","replicaCount=2"]}`, `{"set":["auth.password=[redacted len=7 hmac=]","replicaCount=2"]}`},
		{`{"h":["X-Api-Key: hunter2","Accept: text/html"]}`, `{"h":["X-Api-Key: [redacted len=7 hmac=]","Accept: text/html"]}`},
		{`{"h":["password=","hunter2"]}`, `{"h":["password=",` + digest + `]}`},
		{`{"sql":"UPDATE t SET password=:p","bindings":{"p":"hunter2"}}`, `{"sql":"UPDATE t SET password=:[redacted len=1 hmac=]","bindings":{"len":15,"hmac":""}}`},
		{`{"sql":"UPDATE t SET password = ?","replacements":["hunter2"]}`, `{"sql":"UPDATE t SET password = ?","replacements":{"len":11,"hmac":""}}`},
		{`{"text":"UPDATE t SET password = $1","values":["hunter2"]}`, `{"text":{"len":26,"hmac":""},"values":{"len":11,"hmac":""}}`},
		{`{"locator":"getByPlaceholder('API key')","data":"hunter2"}`, `{"locator":"getByPlaceholder('API key')","data":` + digest + `}`},
		{`{"selector":"#password","chars":"hunter2","delay":5}`, `{"selector":"#password","chars":` + digest + `,"delay":5}`},
		{`{"rows":[["Password","Host"],["hunter2","db"]]}`, `{"rows":[["Password",{"len":4,"hmac":""}],[` + digest + `,"db"]]}`},
		{`{"rows":[["password","ann"],["user","bob"]]}`, `{"rows":[["password",{"len":3,"hmac":""}],["user","bob"]]}`},
		{`{"c":["HSET","user:1","name","ann","password","hunter2","age","7"]}`, `{"c":["HSET","user:1","name","ann","password",` + digest + `,"age","7"]}`},
		{`{"c":["SET","session:token","hunter2","EX","60"]}`, `{"c":["SET","session:token",` + digest + `,"EX","60"]}`},
		{`{"c":["ACL","SETUSER","ann","on",">hunter2","~*"]}`, `{"c":["ACL","SETUSER","ann","on",{"len":8,"hmac":""},"~*"]}`},
		{`{"mysql_args":["-uroot","-phunter2"],"x":["-phunter2"]}`, `{"mysql_args":["-uroot","-p[redacted len=7 hmac=]"],"x":["-phunter2"]}`},
		{`{"vault":["operator","unseal","hunter2"]}`, `{"vault":["operator","unseal",` + digest + `]}`},
		{`{"method":"login","params":["ann","hunter2"]}`, `{"method":"login","params":{"len":17,"hmac":""}}`},
		{`{"e":{"env":"DB_PASSWORD","val":"hunter2"}}`, `{"e":{"env":{"len":11,"hmac":""},"val":` + digest + `}}`},
		{`{"e":{"column":"password","to":"hunter2","where":"id=1"}}`, `{"e":{"column":"password","to":` + digest + `,"where":"id=1"}}`},
		{`{"e":{"json_path":"$.users[0].password","new":"hunter2"}}`, `{"e":{"json_path":"$.users[0].password","new":` + digest + `}}`},
		{`{"question":"What is the admin password?","answer":"hunter2"}`, `{"question":"What is the admin password?","answer":` + digest + `}`},
		{`{"method":"list","params":["ann","x"]}`, `{"method":"list","params":["ann","x"]}`},
		{`{"fields":["username","id"]}`, `{"fields":["username","id"]}`},
		{`{"types":["text","image"]}`, `{"types":["text","image"]}`},
	} {
		got, _ := r.AppendArgs(nil, []byte(tt.in))
		if s := digests(got); s != tt.want {
			t.Errorf("AppendArgs(%s)\n got %s\nwant %s", tt.in, s, tt.want)
		}
		checkSummary(t, got)
	}
}

// TestTwice redacts what has been redacted, and leaves it as it is.
func TestTwice(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, in := range []string{
		"radtest ann hunter2 localhost 0 testing123",
		"keyctl add user mykey \"hunter2\" @u",
		"dotenvx set DB_PASSWORD \"hunter2\" -f .env",
		"chef-server-ctl user-create ann Ann Lee a@x.com 'hunter2' --filename k.pem",
		"client_send = \"^ann^hunter2\"",
		"ansible all -m debug -a \"msg={{ 'hunter2' | password_hash('sha512') }}\"",
		"chpasswd:\n  users:\n  - {name: root, password: hunter2, type: text}",
		"etcdctl user add ann:hunter2 --endpoints=h",
		"| Host | db1 |\n| Password | hunter2 |",
		"SELECT * FROM t WHERE token IN ('hunter2', 'hunter2')",
		"{default_pass, <<\"hunter2\">>}",
		"ann:hunter2@db.example.com:5432/shop",
		`password = "correct-horse"; user = "ann"`,
		"vault write auth/userpass/users/ann password=hunter2 username=u",
		"flyctl secrets set A=hunter2 B=swordfish",
		"smbclient //h/s -U ann%hunter2",
		"git clone https://x-access-token:hunter2@github.com/x/y",
		"expect \"assword:\"; send \"hunter2\\r\"",
		"smtp.PlainAuth(\"\", \"ann\", \"hunter2\", \"h\")",
		"apply(Sensitive('hunter2'))",
		`{"secrets": {"db": "hunter2"}}`,
		"axios.get(u, {auth: {username: 'ann', password: 'hunter2'}})",
		"<p><b>Password:</b> hunter2</p>",
		"<dl><dt>Password:</dt><dd>hunter2</dd></dl>",
		"ALTER ROLE ann PASSWORD $$hunter2$$;",
		`Authorization: Digest username="ann", response="hunter2"`,
		"vault login -method=userpass username=ann password=hunter2",
		"expect \"password:\"\nsend \"hunter2\\r\"",
		`password = """correct-horse"""`,
		"Private-Lines: 1\nhunter2\nPrivate-MAC: 00",
		"secret = <<EOT\nhunter2\nEOT",
		"printf '%s:%s' ann hunter2 | base64 -w0",
		"PASSWORD=$(echo -n hunter2 | base64)",
		`printf '\x70\x61ssword=hunter2'`,
		`f("password=" + "hunter2")`,
		"ffmpeg -i x -f flv rtmp://a.rtmp.youtube.com/live2/hunter2",
		"ann * \"hunter2\" *",
		`password := []byte("hunter2")`,
		`let token: Option<String> = Some("hunter2".into());`,
		"(password . \"hunter2\")",
		"password_hash = f(salt, \"hunter2\")",
		"buildConfigField \"String\", \"API_KEY\", \"\\\"hunter2\\\"\"",
	} {
		once := r.AppendText(nil, []byte(in))
		if twice := r.AppendText(nil, once); string(twice) != string(once) {
			t.Errorf("%q became %q, then %q", in, once, twice)
		}
	}
}
