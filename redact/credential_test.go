package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"auditproxy/redact"
)

// marks are AppendText's replacements of credentials, without their digests.
var marks = regexp.MustCompile(`(len=\d+) hmac=[0-9a-f]{16}\]`)

func clean(r *redact.Redactor, text string) string {
	return marks.ReplaceAllString(string(r.AppendText(nil, []byte(text))), "$1]")
}

// TestLongTokens hides tokens in sentences that are longer than words of them.
func TestLongTokens(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	token := strings.Repeat("a1B2c3D4e5F6g7H8", 25)
	for _, line := range []string{"the api_key is %s", "the token is `%s`, ok", `the password is "%s"`, "set API_TOKEN to %s and restart"} {
		if got := clean(r, fmt.Sprintf(line, token)); got != fmt.Sprintf(line, "[redacted len=400]") {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestText checks which parts of a text are replaced and which are not.
func TestText(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, want string }{
		// A passphrase in a file of settings ends with its line.
		{"db:\n  password: zq horse batt3ry\n  host: h", "db:\n  password: [redacted len=16]\n  host: h"},
		{"[db]\npassword = correct horse battery staple\nhost = h", "[db]\npassword = [redacted len=28]\nhost = h"},
		{"password: hunter2 and then restart", "password: [redacted len=7] and then restart"},
		{"password: hunter2 h1 db.example.com", "password: [redacted len=7] h1 db.example.com"},
		{"password: hunter2 h1 # of ann", "password: [redacted len=7] h1 # of ann"},
		{"PASSWORD=hunter2 make all install", "PASSWORD=[redacted len=7] make all install"},
		// What is behind a secret stays.
		{"runit --passphrase=Zq7 --verbose", "runit --passphrase=[redacted len=3] --verbose"},
		{"docker run -e passphrase=Zq7 -e HOST=h1 img", "docker run -e passphrase=[redacted len=3] -e HOST=h1 img"},
		{"Server=h1;passphrase=Zq7;Timeout=3", "Server=h1;passphrase=[redacted len=3];Timeout=3"},
		{"passphrase=correct horse battery staple", "passphrase=[redacted len=28]"},
		{"sshuttle -r ann:Zq7xCanary4Kd@h1 0/0", "sshuttle -r ann:[redacted len=13]@h1 0/0"},
		{"export BORG_PASSPHRASE=Zq7; borg list", "export BORG_PASSPHRASE=[redacted len=3]; borg list"},
		{"PASSPHRASE=Zq7 borg create /b::x /srv", "PASSPHRASE=[redacted len=3] borg create /b::x /srv"},
		{"PASSPHRASE=Zq7 && borg list", "PASSPHRASE=[redacted len=3] && borg list"},
		// A sign in a passphrase of several words ends nothing.
		{"PASSPHRASE=correct horse: battery staple", "PASSPHRASE=[redacted len=29]"},
		{"PASSPHRASE=zq horse/batt3ry staple", "PASSPHRASE=[redacted len=23]"},
		{"passphrase=zq horse; batt3ry staple", "passphrase=[redacted len=24]"},
		{"passphrase=zq;horse batt3ry staple", "passphrase=[redacted len=23]"},
		{"password: {presence: zqhorse}", "password: [redacted len=19]"},
		{"password: {presence: true, is: zqhorse7}", "password: [redacted len=30]"},
		{"git clone https://ann:ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx@github.com/a/b.git", "git clone https://ann:[redacted len=40]@github.com/a/b.git"},
		{`curl -H "Authorization: Basic YW5uOnN3b3JkZmlzaA==" https://h`, `curl -H "Authorization: Basic [redacted len=20]" https://h`},
		{`"Authorization: Token token="hunter2"`, `"Authorization: Token [redacted len=15]`},
		{"mysql -uroot -psecret9 -e 'show tables'", "mysql -uroot -p[redacted len=7] -e 'show tables'"},
		{"<a><db_password>Zq7xCanary4Kd</db_password></a>", "<a><db_password>[redacted len=13]</db_password></a>"},
		{"<a>ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx</a>", "<a>[redacted len=40]</a>"},
		{"<a>AKIA" + "Q3EGRZ5XHT7KXN2M</a>", "<a>[redacted len=20]</a>"},
		{"runit --token-type bearer --verbose", "runit --token-type bearer --verbose"},
		{"capture_pane", "capture_pane"},
		{"sudo su - postgres", "sudo su - postgres"},
		{"ALTER USER ann WITH PASSWORD\n'hunter2'", "ALTER USER ann WITH PASSWORD\n'[redacted len=7]'"},
		{"PASSWORD=hunter2 make", "PASSWORD=[redacted len=7] make"},
		{"PASSWORD='a b' make", "PASSWORD='[redacted len=3]' make"},
		{`PASSWORD="a b"c make`, `PASSWORD="[redacted len=5] make`},
		{"db_password = hunter2;x", "db_password = [redacted len=7];x"},
		{"password: hunter2", "password: [redacted len=7]"},
		{"password := hunter2", "password := [redacted len=7]"},
		{"curl --api-key=abc --verbose", "curl --api-key=[redacted len=3] --verbose"},
		{"curl --api-key abc --verbose", "curl --api-key [redacted len=3] --verbose"},
		{"curl -token 'a b'", "curl -token '[redacted len=3]'"},
		{`["--password", "a b", "-v"]`, `["--password", "[redacted len=3]", "-v"]`},
		{"--password --verbose", "--password --verbose"},
		{"A=b|TOKEN=abc|C=d", "A=b|TOKEN=[redacted len=3]|C=d"},
		{"(TOKEN=abc)", "(TOKEN=[redacted len=3])"},
		{"max_tokens=100", "max_tokens=100"},
		{"host-10-0-0-1=x", "host-10-0-0-1=x"},
		{"token-10-0-0-1=x", "token-10-0-0-1=[redacted len=1]"},
		{`x = "ghp_wWPw5k4aXcaT4f" + "NP0UcnZwJUVFk6LO0pINUx"`, `x = "[redacted len=45]"`},
		{`$k = 'AKIA' . 'Q3EGRZ5XHT7KXN2M';`, `$k = '[redacted len=25]';`},
		{`see \x67\x68\x70_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx`, `see [redacted len=49]`},
		{"Authorization: Bearer abcdefgh123", "Authorization: Bearer [redacted len=11]"},
		{"Authorization: Basic dTpw", "Authorization: Basic [redacted len=4]"},
		{"Authorization: token abc", "Authorization: token [redacted len=3]"},
		{"-H 'Authorization: abc' x", "-H 'Authorization: [redacted len=3]' x"},
		{"Cookie: a=b; c=d\nHost: h", "Cookie: [redacted len=8]\nHost: h"},
		{`Cookie: a=b; c=\u0064 e\nHost: h`, `Cookie: [redacted len=15]\nHost: h`},
		{`{\"note\":\"Cookie: a=b\",\"n\":1}`, `{\"note\":\"Cookie: [redacted len=3]\",\"n\":1}`},
		{"use bearer tokens", "use bearer tokens"},
		{"backup codes: 1234-5678 2345-6789", "backup codes: [redacted len=19]"},
		{"Your recovery codes:\n1a2b-3c4d\n5e6f-7a8b\nKeep them.", "Your recovery codes:\n[redacted len=19]\nKeep them."},
		{"wallet seed: legal winner thank year wave sausage worth useful legal winner thank yellow", "wallet seed: [redacted len=75]"},
		{"recovery phrase:\n1. legal 2. winner 3. thank 4. year 5. wave 6. sausage 7. worth 8. useful 9. legal 10. winner 11. thank 12. yellow\nok", "recovery phrase:\n[redacted len=114]\nok"},
		{"seed: 42", "seed: 42"},
		{"[DEBUG] Using Key=oxpf4a93fjovt0v1z6lltcbcizlrml98", "[DEBUG] Using Key=[redacted len=32]"},
		{`mapKey := "rc6iLoUEFGGAWNLsuBJnmsh4tZB-oCxcDUmc45HI"`, `mapKey := "[redacted len=40]"`},
		{`chart_key: "e8hwspf91879g0u267yq1bkoxquvwndk"`, `chart_key: "[redacted len=32]"`},
		{`{"mapKey":"e8hwspf91879g0u267yq1bkoxquvwndk","sortKey":"e8hwspf91879g0u267yq1bkoxquvwndk"}`, `{"mapKey":"[redacted len=32]","sortKey":"e8hwspf91879g0u267yq1bkoxquvwndk"}`},
		{"Secret Key:AIhq5Xyb1Gga9Q27", "Secret Key:[redacted len=16]"},
		{"password for master:IhqSb1Gg", "password for master:[redacted len=8]"},
		{"the secret key:value of it", "the secret key:value of it"},
		{`<meta content="a1b2c3" name="csrf-token">`, `<meta content="[redacted len=6]" name="csrf-token">`},
		{"<li>Password: hunter2</li><li>Host: db</li>", "<li>Password: [redacted len=7]</li><li>Host: db</li>"},
		{"<p>Password: hunter2<br>Host: db</p>", "<p>Password: [redacted len=7]<br>Host: db</p>"},
		{"username/password: ann / hunter2", "username/password: ann / [redacted len=7]"},
		{"API key created: a7b8c9d", "API key created: [redacted len=7]"},
		{"Token generated successfully: a7b8c9d", "Token generated successfully: [redacted len=7]"},
		{"log in as ann with a7b8c9d.", "log in as ann with [redacted len=7]."},
		{"smtp://ann%40example.com:hunter2@h:587", "smtp://ann%40example.com:[redacted len=7]@h:587"},
		{`docker run --env "POSTGRES_PASSWORD=hunter2" db`, `docker run --env "POSTGRES_PASSWORD=[redacted len=7]" db`},
		{"docker run --env=DSN=hunter2 db", "docker run --env=DSN=[redacted len=7] db"},
		{"Environment=API_TOKEN=hunter2", "Environment=API_TOKEN=[redacted len=7]"},
		{"./deploy.sh --env prod --environment=staging", "./deploy.sh --env prod --environment=staging"},
		{"run --env hunter2", "run --env [redacted len=7]"},
		{"value = hunter2", "value = [redacted len=7]"},
		{`input: "hunter2"`, `input: "[redacted len=7]"`},
		{"command: hunter2", "command: [redacted len=7]"},
		{"password: Admin@12345", "password: [redacted len=11]"},
		{"stop words: one two three four five six seven eight nine ten", "stop words: one two three four five six seven eight nine ten"},
		{"exit codes: 100001 100002", "exit codes: 100001 100002"},
		{"G-123456 is your Google verification code", "[redacted len=8] is your Google verification code"},
		{"Use 123456 as your login code.", "Use [redacted len=6] as your login code."},
		{"TOTP seed: JBSW Y3DP EHPK 3PXP", "TOTP seed: [redacted len=19]"},
		{"OTP 123456", "OTP [redacted len=6]"},
		{"OTP 123.456", "OTP [redacted len=7]"},
		{"my otp is 123_456", "my otp is [redacted len=7]"},
		{"your code is 1234 5678", "your code is [redacted len=9]"},
		{"Use 123 456 as your login code.", "Use [redacted len=7] as your login code."},
		{"123-456 is your verification code", "[redacted len=7] is your verification code"},
		{"PIN 4711, CVV 123", "PIN [redacted len=4], CVV [redacted len=3]"},
		{"the pin code 4711", "the pin code [redacted len=4]"},
		{"暗証番号 4829", "暗証番号 [redacted len=4]"},
		{"验证码 482913", "验证码 [redacted len=6]"},
		{"Tu código de verificación es 123456", "Tu código de verificación es [redacted len=6]"},
		{"您的验证码是123456", "您的验证码是[redacted len=6]"},
		{"Ваш код подтверждения: 123456", "Ваш код подтверждения: [redacted len=6]"},
		{"logging in with token hunter2", "logging in with token [redacted len=7]"},
		{"Using token hunter2", "Using token [redacted len=7]"},
		{"123456 is your OTP", "[redacted len=6] is your OTP"},
		{"2026 is your year, and 123456 is your order", "2026 is your year, and 123456 is your order"},
		{"use gh\u200bp_0123456789abcdefghij\u00adABCDEFGHIJKLMNOP now", "use [redacted len=42] now"},
		{"use ghp_0123456789&#97;bcdefghijABCDEFGHIJKLMNOP now", "use [redacted len=44] now"},
		{`<p title="a&quot;TOKEN=abc&quot;">ok</p>`, `<p title="a&quot;TOKEN=[redacted len=3]&quot;">ok</p>`},
		{`loading digest key: "/var/lib/auditproxy/spool/digest.key" can be read by others`, `loading digest key: "/var/lib/auditproxy/spool/digest.key" can be read by others`},
		{`loading digest key: "/Users/ann/spool/digest.key" is missing`, `loading digest key: "/Users/ann/spool/digest.key" is missing`},
		{`the key: "/aB3/xYz+81mmAq0LkjW2" works`, `the key: "[redacted len=21]" works`},
		{`the key: "/services/T02AB34CD/B05EF67GH/AbCdEfGhIjKlMnOpQrStUvWx" works`, `the key: "[redacted len=54]" works`},
		{`the key: "/tmp/a1Cd2E3hIj4l5nO6QrS7uV" works`, `the key: "[redacted len=27]" works`},
		{"echo dGhlIHBhc3N3b3JkIGlzIFRyMHViNGRvciYzIGbD", "echo [redacted len=40]"}, // a line of base64, which ends within a letter
		{"echo 'eve:$6$c4FVx0sKdVnGTtAB$B3yAvVtXQjJ7nwYYAVKSP1eMdsJ9PwiJPYyfZ5uFSEbmzYb5nBw9Ob8MVbO5WTMqB0d7VpHVdpGtTl7Pzv4gJ/:0:0::/:/bin/sh' >> /etc/shadow", "echo 'eve:[redacted len=121]' >> /etc/shadow"},
		{"htpasswd: ann:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe", "htpasswd: [redacted len=64]"},
		{"sed 's/$1$2/x/' $1$HOME/file", "sed 's/$1$2/x/' $1$HOME/file"},
		{"cp ${SHA}/build/output-1 $2$SUFFIX/of/a/long/directory/name1", "cp ${SHA}/build/output-1 $2$SUFFIX/of/a/long/directory/name1"},
		{"SELECT * FROM s3('https://b/x.csv', 'CSV', 'a Int8, b String')", "SELECT * FROM s3('https://b/x.csv', 'CSV', 'a Int8, b String')"},
		{"* **Password:** hunter2", "* **Password:** [redacted len=7]"},
		{"**Password**: `hunter2`", "**Password**: `[redacted len=7]`"},
		{"**Note**: see below", "**Note**: see below"},
		{"use the token aB3xK9mQ2rT7 for it", "use the token [redacted len=12] for it"},
		{"Password for the elastic user (reset with x):\n  hunter2", "Password for the elastic user (reset with x):\n  [redacted len=7]"},
		{"Use this password to log in:\nSommer2024!", "Use this password to log in:\n[redacted len=11]"},
		{"log in with the password (hunter2)", "log in with the password ([redacted len=7])"},
		{"the password `hunter2` works", "the password `[redacted len=7]` works"},
		{"changed the password from hunter2 to Sommer2024!", "changed the password from [redacted len=22]"},
		{"https://h/reset-password/d2hq7xk3m9w4pz81vt60?a=b", "https://h/reset-password/[redacted len=20]?a=b"},
		{"https://h/user/confirm/MQ/c1d2e3-4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c/", "https://h/user/confirm/MQ/[redacted len=39]/"},
		{"Using token 4f3c2a1b9d8e7f60a1b2c3d4e5f60718", "Using token [redacted len=32]"},
		{"the API key d2hq7xk3m9w4pz81vt60 works", "the API key [redacted len=20] works"},
		{"with secret JBSWY3DPEHPK3PXPJBSW", "with secret [redacted len=20]"},
		{"the cache key 4f3c2a1b9d8e7f60a1b2c3d4e5f60718", "the cache key 4f3c2a1b9d8e7f60a1b2c3d4e5f60718"},
		{"Using token 550e8400-e29b-41d4-a716-446655440000", "Using token 550e8400-e29b-41d4-a716-446655440000"},
		{"unexpected token parseV2Token1Names2", "unexpected token parseV2Token1Names2"},
		{"the token parseV2Token1 and the key aB3xK9mQ2rT7", "the token parseV2Token1 and the key aB3xK9mQ2rT7"},
		{"a bearer eyJ0123456789abcdef", "a bearer [redacted len=19]"},
		{"basic usage of tmux", "basic usage of tmux"},
		{"Basic YWxhZGRpbjpvcGVuc2VzYW1l", "Basic [redacted len=24]"},
		{"https://u:p@host/x", "https://u:[redacted len=1]@host/x"},
		{"https://tok@host/x", "https://[redacted len=3]@host/x"},
		{"https://u:@host/x", "https://[redacted len=1]:@host/x"},
		{"postgres://u:p/q@host/db", "postgres://u:[redacted len=3]@host/db"},
		{"https://host:80/a@b", "https://host:80/a@b"},
		{"https://token:abc@host/x", "https://token:[redacted len=3]@host/x"},
		{"https://host/x?a=1&api_key=abc&b=2", "https://host/x?a=1&api_key=[redacted len=3]&b=2"},
		{"https://host/x?sig=abc&b=2", "https://host/x?sig=[redacted len=3]&b=2"},
		{"https://host/x?a%70i_key=abc", "https://host/x?a%70i_key=[redacted len=3]"},
		{"https://hooks.slack.com/services/T0/B0/xyz now", "https://hooks.slack.com/[redacted len=18] now"},
		{`{"password":"x y","n":1}`, `{"password":"[redacted len=3]","n":1}`},
		{`{\"password\":\"x\\\"y\",\"n\":1}`, `{\"password\":\"[redacted len=6]\",\"n\":1}`},
		{`{\\\"password\\\":\\\"x y\\\",\\\"n\\\":1}`, `{\\\"password\\\":\\\"[redacted len=3]\\\",\\\"n\\\":1}`},
		{`{"pass\u0077ord":"x y"}`, `{"pass\u0077ord":"[redacted len=3]"}`},
		{`{"tokens":["a","b]"],"n":1}`, `{"tokens":[redacted len=10],"n":1}`},
		{`{"password":"x\\","n":1}`, `{"password":"[redacted len=3]","n":1}`},
		{`{\"note\":\"TOKEN=abc\",\"n\":1}`, `{\"note\":\"TOKEN=[redacted len=3]\",\"n\":1}`},
		{"AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[redacted len=20] [redacted len=40]"},
		{"/srv/AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY/x", "/srv/[redacted len=20] [redacted len=42]"},
		{`TOKEN=abc\\,TOKEN=\u0064`, `TOKEN=[redacted len=18]`},
		{`TOKEN='a',\u0054OKEN=b`, `TOKEN='[redacted len=1]',\u0054OKEN=[redacted len=1]`},
		{`ghp_0123456789abcdef'\u0067hp_0123456789abcdef`, `[redacted len=20]'[redacted len=25]`},
		{"TOKEN=AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "TOKEN=[redacted len=20] [redacted len=40]"},
		{"TLS_PRIVATE_KEY=-----BEGIN KEY-----\nabc\n-----END KEY----- x", "TLS_PRIVATE_KEY=[redacted len=41] x"},
		{"PASSWORD=--token abc x", "PASSWORD=[redacted len=11] x"},
		{"-token -token abc x", "-token [redacted len=10] x"},
		{"task-list-of-things-1234567890123456", "task-list-of-things-1234567890123456"},
		{"-----BEGIN KEY-----\nabc\n-----END KEY-----\nx", "[redacted len=41]\nx"},
		{"x -----BEGIN KEY-----\nabc", "x [redacted len=23]"},
		{"C:\\Users\\ann\\file_name_that_is_long.txt", "C:\\Users\\ann\\file_name_that_is_long.txt"},
		{"/home/ann/src/github.com/tmux-python/libtmux", "/home/ann/src/github.com/tmux-python/libtmux"},
		{"commit 0123456789abcdef0123456789abcdef01234567", "commit 0123456789abcdef0123456789abcdef01234567"},
		{"password=[redacted len=7 hmac=0123456789abcdef]", "password=[redacted len=7]"},
		{"password=[redacted len=7 hmac=0123456789abcdef]x", "password=[redacted len=7][redacted len=1]"},
		{"#{session_name}:#{window_index}.#{pane_index}", "#{session_name}:#{window_index}.#{pane_index}"},
		{"user,password,role\nann,hunter2,admin\n", "user,password,role\nann,[redacted len=7],admin\n"},
		{"| user | password |\n|---|---|\n| ann | correct horse |", "| user | password |\n|---|---|\n| ann | [redacted len=13] |"},
		{"NAME     PASSWORD   AGE\nann      hunter2    3d\nbob      -          4d", "NAME     PASSWORD   AGE\nann      [redacted len=7]    3d\nbob      -          4d"},
		{"Key        Value\n---        -----\ntoken      hunter2\nttl        1h", "Key        Value\n---        -----\ntoken      [redacted len=7]\nttl        1h"},
		{"-[ RECORD 1 ]\nuser     | ann\npassword | hunter2", "-[ RECORD 1 ]\nuser     | ann\npassword | [redacted len=7]"},
		{"the password is correct horse battery staple.", "the password is [redacted len=28]."},
		{"the password is swordfish for now", "the password is [redacted len=9] for now"},
		{"my pin is 4711, the code is 12", "my pin is [redacted len=4], the code is 12"},
		{"log in with ann / swordfish and look", "log in with ann / [redacted len=9] and look"},
		{"用户名：ann，密码：hunter2。", "用户名：ann，密码：[redacted len=7]。"},
		{"パスワード＝hunter2", "パスワード＝[redacted len=7]"},
		{"AUTH hunter2", "AUTH [redacted len=7]"},
		{"ACL SETUSER ann on >hunter2 ~*", "ACL SETUSER ann on >[redacted len=7] ~*"},
		{"PRAGMA key='hunter2';", "PRAGMA key='[redacted len=7]';"},
		{`user = "ann:hunter2"`, `user = "ann:[redacted len=7]"`},
		{`["user","ann","password","hunter2"]`, `["user","ann","password","[redacted len=7]"]`},
		{"Password:\nhunter2\n$ ls", "Password:\n[redacted len=7]\n$ ls"},
		{"\x1b[1mPassword:\x1b[0m hunter2", "\x1b[1mPassword:\x1b[0m [redacted len=7]"},
		{`init.credentials = a ? "include" : "omit"`, `init.credentials = [redacted len=1] ? "include" : "omit"`},
		{"session_id=k3j9x8f4q2m7z1w5; window=3", "session_id=[redacted len=16]; window=3"},
	} {
		if got := clean(r, tt.in); got != tt.want {
			t.Errorf("AppendText(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

// credentials has one of each recognised format. They are put together here so
// that no scanner of repositories reports them.
var credentials = map[string]string{
	"aws key id":     "AKIA" + "Q3EGRZ5XHT7KXN2M",
	"aws session id": "ASIA" + "Q3EGRZ5XHT7KXN2M",
	"github":         "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"github oauth":   "gho_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"github user":    "ghu_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"github server":  "ghs_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"github refresh": "ghr_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"github pat":     "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567890abcdefgh",
	"gitlab":         "glpat-" + "Zx8Yw7Vu6Ts5Rq4Po3Nm",
	"slack bot":      "xoxb-" + "2345678901-2345678901234-AbCdEfGhIjKlMnOpQrStUvWx",
	"slack app":      "xapp-" + "1-A0123456789-2345678901234-abcdef0123456789",
	"slack webhook":  "https://hooks.slack.com/services/" + "T02AB34CD/B05EF67GH/AbCdEfGhIjKlMnOpQrStUvWx",
	"openai":         "sk-" + "proj-T3BlbkFJabc123DEF456ghi789JKL012mno345",
	"anthropic":      "sk-ant-" + "api03-Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9",
	"stripe":         "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
	"stripe limited": "rk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
	"google":         "AIza" + "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
	"npm":            "npm_" + "Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9Dc8B",
	"pypi":           "pypi-" + "AgEIcHlwaS5vcmcCJDc2YjQ4ZjJlLTQ2MjUtNDk4ZS1iZTU3",
	"sendgrid":       "SG." + "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr",
	"hugging face":   "hf_" + "ZxYwVuTsRqPoNmLkJiHgFeDcBaZyXwVuTs",
	"jwt":            "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"pem":            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
	"bearer":         "Bearer Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1",
	"basic":          "Basic QWxhZGRpbjpPcGVuU2VzYW1lNDI=",
	"url":            "https://ann:c0rrect-h0rse@example.com/x",
	"assignment":     "DB_PASSWORD=c0rrect-h0rse-battery",
}

// secretOf returns the bytes of a credential that must not come out.
func secretOf(name, c string) string {
	switch name {
	case "bearer", "basic":
		_, c, _ = strings.Cut(c, " ")
	case "url", "assignment":
		c = "c0rrect-h0rse"
	case "slack webhook":
		c = "AbCdEfGhIjKlMnOpQrStUvWx"
	case "pem":
		c = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
	}
	return c
}

func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
	}
	return b.String()
}

func unicodeEscapes(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString(`\u00` + hex.EncodeToString([]byte{c}))
	}
	return b.String()
}

// encodings are the forms in which a secret may try to pass.
var encodings = []struct {
	name string
	of   func(string) string
}{
	{"as it is", func(s string) string { return s }},
	{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{"base64 for URLs", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
	{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"upper hex", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
	{"percent", percent},
	{"unicode escapes", unicodeEscapes},
}

// leak returns the form in which secret is in out, or "".
func leak(out, secret string) string {
	for _, e := range encodings {
		if strings.Contains(out, e.of(secret)) {
			return e.name
		}
	}
	return ""
}

// TestCredentialsInTexts puts each credential, in each encoding, in front of,
// behind and between other things.
func TestCredentialsInTexts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for name, c := range credentials {
		for _, e := range encodings {
			for _, around := range []string{"%", "see %", "% is it", "a='%'", `{"a":"%"}`, "--to % -v", "x;%;y", "/srv/%", "a,%", "(%)", strings.Repeat("é ", 150) + "%"} {
				in := strings.Replace(around, "%", e.of(c), 1)
				out := string(r.AppendText(nil, []byte(in)))
				secret := secretOf(name, c)
				if form := leak(out, secret); form != "" || strings.Contains(out, e.of(secret)) {
					t.Errorf("%s, %s: AppendText(%q) = %q, which has it %s", name, e.name, in, out, form)
				}
			}
		}
	}
}

// TestEncodedBehindLetters puts encoded credentials behind letters that look
// like a part of them.
func TestEncodedBehindLetters(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	c := credentials["github"]
	for _, before := range []string{"", "a", "ab", "abc", "abcd", "abcde"} {
		for _, e := range encodings {
			in := before + e.of(c)
			if out := string(r.AppendText(nil, []byte(in))); strings.Contains(out, e.of(c)) {
				t.Errorf("%s: AppendText(%q) = %q", e.name, in, out)
			}
		}
	}
}

// TestMessagesStayWhole checks that only the credential is replaced, in text of
// any length.
func TestMessagesStayWhole(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	long := strings.Repeat("é ", 500)
	in := long + credentials["github"] + " " + long
	got := marks.ReplaceAllString(string(r.AppendMessage(nil, []byte(in))), "$1]")
	if want := long + "[redacted len=40] " + long; got != want {
		t.Errorf("AppendMessage = %q", got)
	}
	for _, tt := range []struct{ in, want string }{
		{`starting "./text": exec format error`, `starting "./text": exec format error`},
		{"reading credentials: open /kafka.pass: no such file", "reading credentials: open /kafka.pass: no such file"},
		{"key: https://u:p@host, TOKEN=x: token: y", "key: https://u:[redacted len=1]@host, TOKEN=[redacted len=2] token: y"},
		{"unknown flag: --token=x", "unknown flag: --token=[redacted len=1]"},
	} {
		if got := marks.ReplaceAllString(string(r.AppendMessage(nil, []byte(tt.in))), "$1]"); got != tt.want {
			t.Errorf("AppendMessage(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got := clean(r, "password: x"); got != "password: [redacted len=1]" {
			t.Errorf("after a message, AppendText = %q", got)
		}
	}
}

func TestNamedTexts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ name, in, want string }{
		{"team", "correct horse", "correct horse"},
		{"team", "TOKEN=x", "TOKEN=[redacted len=1]"},
		{"db_password", "correct horse", "[redacted len=13]"},
		{"Environment", "A=b", "[redacted len=3]"},
	} {
		got := marks.ReplaceAllString(string(r.AppendNamed(nil, []byte(tt.name), []byte(tt.in))), "$1]")
		if got != tt.want {
			t.Errorf("AppendNamed(%q, %q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// TestPathsOfKeys: a message names the file of a key, in any directory of a system.
func TestPathsOfKeys(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, dir := range strings.Fields("boot dev etc home media mnt opt proc root run srv sys tmp usr var Library Users Volumes private") {
		text := fmt.Sprintf("loading digest key: %q is missing", "/"+dir+"/auditproxy/digest.key")
		if got := clean(r, text); got != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	for _, path := range []string{"/other/auditproxy/digest.key", "etc/auditproxy/digest.key"} {
		text := fmt.Sprintf("loading digest key: %q is missing", path)
		if got := clean(r, text); strings.Contains(got, path) {
			t.Errorf("%s stays", text)
		}
	}
}

// TestTextsThatRepeat would not end if the scanner went back and forth: each
// text is 256 KiB that make it scan around.
func TestTextsThatRepeat(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, unit := range []string{
		"=", ":", "password=", "password:", "token='", `token="\`, "token=[", `\"`, `":`, "--a", "--token ", "-%", "%-",
		"eyJ", "eyJaaaaaaaa.", "://", "://a:b", "://a:b/@", "AKIA", "ghp_", "sk-", "-----BEGIN ", "-----END ", "Bearer ",
		"%41", `\u0041`, "[redacted ", "…[len=", "[redacted len=1 hmac=0123456789abcdef]", "cookie:", "a\\", "AKIAIOSFODNN7EXAMPLE ",
		"token= ", "é", "password%3D", "cGFzc3dvcmQ9", "x ", "\u200b", "token=\\", "=[{", "token=-token ", "token=-----BEGIN ", "token=AKIA ", "ghp_abc1", "glpat-1aB2", "telegram=", "sk-1a", "s.", "curl -u ", "mysql -p'", "sudo -S <<<'", "<password>", "name=password ", "[\"token\",\"", "kind: Secret\ndata:{", "\"\\n", "cookie: \\u0041", `\\\\`, "-a\\", "-a,", "]=", "+=",
	} {
		text := []byte(strings.Repeat(unit, 1<<18/len(unit)))
		for _, in := range [][]byte{text, append([]byte("token=\"x\" AKIAIOSFODNN7EXAMPLE %41 "), text...)} {
			if got := r.AppendText(nil, in); len(got) > 4096 {
				t.Errorf("%q: %d bytes", unit, len(got))
			}
		}
		if got, _ := r.AppendArgs(nil, append(append([]byte(`{"`), bytes.ReplaceAll(text, []byte(`"`), []byte(`\"`))...), `":1}`...)); len(got) > 8192 {
			t.Errorf("%q as a name: %d bytes", unit, len(got))
		}
	}
}

// TestBrokenEncodings hides all of a file that is encoded and broken into lines, or in
// UTF-16, if it has a secret anywhere, and nothing around it.
func TestBrokenEncodings(t *testing.T) {
	const file = "DB_HOST=localhost\nDB_USER=ann\nDB_NAME=shop\nLOG_LEVEL=debug\nDB_PASSWORD=hunter2\nDB_PORT=5432\nDB_POOL=12\nREGION=eu-west-1\n"
	const command = `Get-ChildItem -Path C:\Users | Out-File x.txt; $env:TOKEN = 'hunter2'; Get-Process | Sort-Object`
	broken := func(text string, width int, end string) string {
		var lines []string
		for ; len(text) > width; text = text[width:] {
			lines = append(lines, text[:width])
		}
		return strings.Join(append(lines, text), end)
	}
	wide := func(text string) []byte {
		var b []byte
		for _, c := range []byte(text) {
			b = append(b, c, 0)
		}
		return b
	}
	r := newRedactor(t, redact.Config{})
	mark := regexp.MustCompile(`\[redacted len=\d+\]`)
	for _, tt := range []struct{ name, around, text string }{
		{"base64(1)", "base64 -d > x <<EOF\n%s\nEOF\nls", broken(base64.StdEncoding.EncodeToString([]byte(file)), 76, "\n")},
		{"PEM's width", "%s\n", broken(base64.StdEncoding.EncodeToString([]byte(file)), 64, "\n")},
		{"MIME", "Content-Transfer-Encoding: base64\r\n\r\n%s\r\n", broken(base64.StdEncoding.EncodeToString([]byte(file)), 76, "\r\n")},
		{"indented", "blob: |\n  %s\nother: x", broken(base64.StdEncoding.EncodeToString([]byte(file)), 76, "\n  ")},
		{"in a string in a string", `{"blob": "%s"}`, broken(base64.StdEncoding.EncodeToString([]byte(file)), 76, `\n`)},
		{"xxd -p", "xxd -r -p > x <<EOF\n%s\nEOF", broken(hex.EncodeToString([]byte(file)), 60, "\n")},
		{"hexdump -C", "$ hexdump -C .env\n%s\n$ ls", dumped(file, "%08x  % x  |%s|")},
		{"xxd", "%s\nls\n", dumped(file, "%08x: %x  %s")},
		{"tcpdump -X", "\n%s\nls\n", dumped(file, "\t0x%04x:  %x  %s")},
		{"od -tx1", "ls\n%s\nls", dumped(file, "%07o % x%.0s")},
		{"a literal of SQL", "SELECT %s;", "0x" + hex.EncodeToString([]byte(file))},
		{"PowerShell", "powershell -EncodedCommand %s", base64.StdEncoding.EncodeToString(wide(command))},
	} {
		in := fmt.Sprintf(tt.around, tt.text)
		if got, want := mark.ReplaceAllString(clean(r, in), "%s"), tt.around; got != want {
			t.Errorf("%s: AppendText(%q) = %q, want %q", tt.name, in, got, want)
		}
		harmless := strings.NewReplacer("PASSWORD", "PASSAGES", "TOKEN", "TOPIC").Replace
		in = fmt.Sprintf(tt.around, broken(base64.StdEncoding.EncodeToString([]byte(harmless(file)))[:128], 64, "\n"))
		if got := clean(r, in); got != in {
			t.Errorf("%s: AppendText(%q) = %q", tt.name, in, got)
		}
	}
	in := base64.StdEncoding.EncodeToString(wide("Get-ChildItem -Path C:\\Users | Out-File x.txt"))
	if got := clean(r, in); got != in {
		t.Errorf("AppendText(%q) = %q", in, got)
	}
}

// dumped returns text as dumps show it, 16 bytes a line: the offset, the bytes and the text.
func dumped(text, format string) string {
	var b strings.Builder
	for i := 0; i < len(text); i += 16 {
		part := text[i:min(len(text), i+16)]
		shown := strings.ReplaceAll(part, "\n", ".")
		if i > 0 {
			b.WriteByte('\n')
		}
		if strings.Contains(format, "% x") {
			fmt.Fprintf(&b, strings.Replace(format, "% x", "%-50s", 1), i, fmt.Sprintf("% x", part), shown)
			continue
		}
		groups := regexp.MustCompile(`.{4}`).ReplaceAllString(hex.EncodeToString([]byte(part)), "$0 ")
		fmt.Fprintf(&b, strings.Replace(format, "%x", "%-40s", 1), i, groups, shown)
	}
	return b.String()
}

// TestScreens hides all of a secret that a terminal breaks at its last column, and no line
// below a secret that ends elsewhere.
func TestScreens(t *testing.T) {
	const token = "NqVwYS81VP7Hb1DX8pPd5khxE3pyIgKpaUnArl63XykWZeiNNCiia3anXn9k3ksu9mI4ROnl89Sm995ytbxAk7jqevt0MLaMRTve" +
		"tw0tESulEETldq8b8Vw2zbJYAxyL1aCcTlN99mhWp708DwGw5HqXDgLVXZx3scB8fnvGNx6jvr7SIftR"
	r := newRedactor(t, redact.Config{})
	for _, width := range []int{80, 100, 132} {
		for _, before := range []string{"$ echo DB_PASSWORD=", "ann@h:~$ export GITHUB_TOKEN=", "Authorization: Bearer "} {
			for _, n := range []int{width - len(before) + 3, width + 40} {
				screen := before + token[:n]
				screen = screen[:width] + "\n" + screen[width:]
				if len(screen) > 2*width+1 {
					screen = screen[:2*width+1] + "\n" + screen[2*width+1:]
				}
				in := strings.Repeat("-", width) + "\n" + screen + "\nann@h:~$ ls"
				got, rest, _ := strings.Cut(strings.TrimPrefix(string(r.AppendMessage(nil, []byte(in))), strings.Repeat("-", width)+"\n"+before), "]")
				if !strings.HasPrefix(got, "[redacted len=") || rest != "\nann@h:~$ ls" {
					t.Errorf("AppendMessage(%q) = %q, then %q", in, got, rest)
				}
			}
		}
	}
	for _, in := range []string{
		"A=1\nDB_PASSWORD=" + token[:68] + "\nHOST=localhost\n",
		"A=1\nDB_PASSWORD=" + token[:60] + "\nls\n",
	} {
		before, behind, _ := strings.Cut(in, token[:60])
		behind = behind[strings.IndexByte(behind, '\n'):]
		if got := clean(r, in); !strings.HasPrefix(got, before+"[redacted len=") || !strings.HasSuffix(got, "]"+behind) {
			t.Errorf("AppendText(%q) = %q", in, got)
		}
	}
}

// TestCardMembers hides the number of a card in an object that says it is of one, by another
// member or by the name of the object, and no other number.
func TestCardMembers(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	const card, id, hidden = "4111111111111111", "4111111111111112", `{"len":16,"hmac":""}`
	for _, tt := range []struct{ in, want string }{
		{`{"number":"` + card + `","exp_month":1}`, `{"number":` + hidden + `,"exp_month":1}`},
		{`{"expiryYear":27,"pan":` + card + `,"id":` + id + `}`, `{"expiryYear":27,"pan":` + hidden + `,"id":` + id + `}`},
		{`{"a":{"card":{"number":"` + card + `"}}}`, `{"a":{"card":{"number":` + hidden + `}}}`},
		{`{"cards":[{"number":"` + card + `"},{"n":"4111 1111 1111 1111"}]}`, `{"cards":[{"number":` + hidden + `},{"n":{"len":19,"hmac":""}}]}`},
		{`{"cards":[1,"x","` + card + `"]}`, `{"cards":{"len":26,"hmac":""}}`},
		{`{"cvc":1,"number":" ` + card + `\n"}`, `{"cvc":{"len":1,"hmac":""},"number":{"len":18,"hmac":""}}`},
		{`{"cards":[1,"x","` + id + `"]}`, `{"cards":[1,"x","` + id + `"]}`},
		{`{"number":"` + card + `","name":"ann"}`, `{"number":"` + card + `","name":"ann"}`},
		{`{"id":` + card + `,"exp":1}`, `{"id":` + card + `,"exp":1}`},
	} {
		got, _ := r.AppendArgs(nil, []byte(tt.in))
		if s := digests(got); s != tt.want {
			t.Errorf("AppendArgs(%s) = %s, want %s", tt.in, s, tt.want)
		}
		checkSummary(t, got)
	}
}

// TestCards hides the numbers of cards, in groups, or beside what says that they are of
// one, with the date and the code behind them.
func TestCards(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, want string }{
		{`4111 1111 1111 1111`, `#`},
		{`4111-1111-1111-1111`, `#`},
		{`card 4111111111111111`, `card #`},
		{`pay with 4111 1111 1111 1111, please`, `pay with #, please`},
		{`4111 1111 1111 1111 12/27 123`, `#`},
		{`4111111111111111|12|2027|123`, `#`},
		{`4111111111111111 12/27`, `#`},
		{`5500 0000 0000 0004 exp 01/30 cvv 321`, `# exp 01/30 cvv #`},
		{`3782 822463 10005`, `#`},
		{`378282246310005 amex`, `# amex`},
		{`{"card_number":"4111111111111111"}`, `{"card_number":"#"}`},
		{`{"number": 4242424242424242, "cvc": "123"}`, `{"number": #, "cvc": "#"}`},
		{`{"number":"4242424242424242","exp_month":12,"exp_year":2030,"cvc":"123"}`, `{"number":"#","exp_month":12,"exp_year":2030,"cvc":"#"}`},
		{`card: 6011111111111117`, `card: #`},
		{`5105105105105100 cvc 123`, `# cvc #`},
		{`charge visa 4012888888881881`, `charge visa #`},
		{`ccnum=4111111111111111&cvv=123`, `ccnum=#&cvv=#`},
		{`3530 1113 3330 0000`, `#`},
	} {
		want := strings.ReplaceAll(regexp.QuoteMeta(tt.want), "#", `\[redacted len=\d+ hmac=[0-9a-f]+\]`)
		if got := r.AppendText(nil, []byte(tt.in)); !regexp.MustCompile("^" + want + "$").Match(got) {
			t.Errorf("AppendText(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}
