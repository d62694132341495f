package redact

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostileUnits are repeated to make texts in which each byte may make the
// redactor scan others, one for each way to do so.
var hostileUnits = []string{
	"{\"a\":\"{\\\"tokens:\n - ", "[redacted password=$(echo ", "[tokens]\n\\\"token\\\":\\\")VALUES(", "cHc9eAaaaaaaaaaaaaaaaaaaaa+a/", "UABBAFMAUwBXAE8AUgBEAD0AaAB1AG4Aglpat-1aB2",
	"a,b,c,d,e,f,g,h=%w[x=", "a,b=%w[x[redacted len=1 hmac=0123456789abcdef]", "passwordeval = ea:P@b@", "passwordeval =password={a}éb ", "a, password = f(", "a, password = f(x", "${PASSWORD:-$", "${PASSWORD:?", "secret_file=/a/", "?password", "secret?`", "{key?", "password?&quot;",
	"auth: a ", `password("`, "password('a", `password("a",`, "password (", "password=(", `password=f("`, `password=f("a`, "sudo -S <<A\n", "sudo -S <<A\nA\n", "password is ",
	"token<<AB\n", "\"token<<AB\"", "token<<AB\nAB\n", "echo a' ", "a\" + \"", "\x00a", "password ", `<a b="">`, `<password a="">`, "<a:", "a:b>", "password=$(echo ", "password: !a ", "password: &a ", "a::b", "x string = ", "x [] = ", `variable "`, `|| "`, `a || "`,
	"password=${{", "gh secret set -b ", "ssh-keygen -N ", "vault kv put a=b ", "openssl passwd ", "smbclient //a ", "ConvertTo-SecureString a ", "echo a|passwd ", `"X-A-Token","a",`,
	"name:password,", "name:[", "name={", "name: \"a,", "name: |\n ", "name:\n", "name=Bearer ", "header:a,",
	"=", ":", "password=", "password:", "token='", `token="\`, "token=[", `\"`, `":`, "--a", "--token ", "-%", "%-", "eyJ", "eyJaaaaaaaa.", "://", "://a:b",
	"://a:b/@", "AKIA", "ghp_", "sk-", "-----BEGIN ", "-----END ", "-----BEGIN A-----END ", "Bearer ", "%41", `\u0041`, "[redacted ", "…[len=",
	"[redacted len=1 hmac=0123456789abcdef]", "cookie:", "a\\", "AKIAIOSFODNN7EXAMPLE ", "token= ", "é", "password%3D", "cGFzc3dvcmQ9", "x ", "\u200b",
	"token=\\", "=[{", "token=-token ", "token=-----BEGIN ", "token=AKIA ", "ghp_abc1", "glpat-1aB2", "telegram=", "sk-1a", "s.", "curl -u ", "mysql -p'",
	"sudo -S <<<'", "sudo -S <<<", "<password>", "<password", "name=password ", `["token","`, `["token",`, "kind: Secret\ndata:{", "kind: Secret\ndata:\n ",
	"\"\\n", "cookie: \\u0041", `\\\\`, "-a\\", "-a,", "]=", "+=", "key", "sk", "a1", "cHc9eA", "<a>", "<key>password</key>", "a@", "curl -u a:b ", "pass ",
	"pw 'a", "sk_", "a: |\n ", "password: |\n ", "password:\n", "['a',", "git config a ", "70773d78", "hf_", "docker login -p ", "echo a|sudo -S ", "telegram a",
	"okta ", "${a}", "password={{", "password=$(", "mysql\n", "mysql -p\"", "htpasswd -b a b ", "<<EOF\n", "EOF\n", "a|", "aaaaaaaaaaaaaaa|", "12345678:", ".acc", "|",
	"nmcli password 'a' ", "cat <<A > pw\n", "(password)VALUES('", ")VALUES(", "enable secret h:5432:push ", ">pw -a ", "fill('token= ", "tokens:\n - ", "tokens:\n", "[tokens]\n",
	"token=`API key: ", "connect(", "PDO('a',", "hash(b'", "*:*:", "h:5432:", "password for ", "PASSWORD FOR a = ", "password $$", "send \"", "pass <(echo ", "key: a\n", "bw unlock ",
	"ansible-vault --name ", "printf -v pw ", "mysql -p\"'", "password E'", "['password'] \"", "stringData={", "a@tcp(", ":a@", `{"password":"`, `{"a":"{\"`, "'", "\"", "`", "(", "token=`", "%7B%22", "\\\"token\\\":\\\"", "password 'a' ", "ops_eyJ", "https://a@", "token = ", "set -gx", "jdbc:oracle:thin:", "thin:a/", "thin:@", "thin:a/@", "thin:a/ @", "https://api.telegram.org/bot1:a/b", `password="""`, `password """a":`, "- --token\n- ", "--token \\\n ", "set -a -g ", `<property name="password">`, "pw <(", `token <- "`, `token to "`, "\nPASS a ", "echo a|su ", "?key=", "&sig=a",
	"password:</b>", "password:</b><i>", "*api key: ", "*api key:", "<td>", "<tr><td>password</td><td>x</td>", "&quot;", "||password||\n", "a-----END PRIVATE KEY-----\n", "COPY t (password) FROM stdin;\n", `("password", x, `, "password = <<~E\n", `"a" -> "b" || `,
	"user,password\na,b\n", "user,password\n", "user|password\n--|--\n", "|a|password|\n|", "a  password\nb  c\n", "a password\n- -\n", "-[ RECORD 1\na|b\n", "|\n", "--\n", ",\t\n", "a;b\n", `"a","password` + "\n",
	"password is a ", "password is a b c d ", "password for a ", "password is now ", `password is "`, "log in with a/", "credentials: a/", "密码是", "密码：", "：", "name：", "пароль для ", "user\nann\npassword\nb\n", "set to password to ", "key is ", "code is 1",
	"AUTH ", "AUTH a\n", "LOGIN a ", "user ann on >", "SETUSER >a ", "SETUSER a\n>a", "PASS a\nNICK ", "PRAGMA key=", `user = "a:`, `"user","a","password","`, `["password","a","user","`, "salt=a1b2", "sessionid=a1a1a1a1a1a1a1a1 ",
	"form-data; name=\"password\"\n", "AS x KEY 'a' ", "\x1b[1m", "password:\x1b[", "aaaaaaaaaaaaaaaaaaaa/", "aaaaaaaaaaaaaaaaaaaa+a/", "%41+a ", `getpass("password: `, "Password:\na\n",
	"password=<<A\n", `token="a"+`, "PASSWORD=a\\\n", `"kty":"d":"`, "<RSAKeyValue><D>", "Private-Lines: ", "---- BEGIN PRIVATE KEY ",
	`'"'"'`, `'\''`, `'\'`, `a='"'"'`, `'\n`, `'password=a\n`, "printf ", "printf %s ", "printf 'password=%s' ", "printf 'password=", "(echo a;", "(echo a)|", "echo a:b|base64 ", "base64 ", "sed s/@", "sed s/@a ",
	"sed s/@PASSWORD@/a ", "sed s|@PASSWORD@|a ", "sed s/{{ password }}/", "password=.*/", "$6$", "$1$a", "$2b$", "$y$", "$P$", "{MD5}", "{SSHA}", "token='a'", "'a'\"b\"", "token=a\\ ", "s3('a','b',",
	`password.equals("a`, `"a".equals(`, "strcmp(a,", "Secret.fromString(", "'a'|password_hash(", "[]byte(", "UsmUserData('a',",
	`user_a="`, `{password, "a`, "{password,", "token IN ('a',", "token in (", "a VARCHAR(9) := ", "wireless.key=", "[a]:1 b:", "a:b@c:", "a:{PLAIN}", "register => a:b@", "::set-output name=token::", "chpasswd:\n a:b\n",
	`: EAP "a" `, `: RSA a "`, `option key '`, "password=a.b(", "password={type:String ", "--password PASSWORD ", "d-i a/password password ", "password=the ", "u: a p: ", "login=a:b ", "client_send=^a^",
	"Authorization: a b ", "password 7 a ", "ftp\nuser a b\n", "|password|a1b2|\n", ":pserver:a:b@", "x ? 'password' : ", "password=a_b(", "${a:?", `["password","a_token",`, "password: Optional[",
	"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVpBQkNERUZHSElKS0xNTk9QUVJT\n", "44425f484f53543d6c6f63616c686f73740a44425f484f53543d6c6f63616c68\n", `\n`, "UABBAFMAUwBXAE8AUgBEAD0AaAB1AG4A",
	"token=a[1] ", `token=a["b"]["c"]`, "token=crypt($1,", "password: access token a b ", "password: a.go: ", "auth: basic ", "password:a[", "|-|\n|password|a|\n", "token: !Ref a ",
	"token=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "|┃password┃a1┃\n", "WIFI:T:WPA;P:a", ";P:", "password was set to ", "password﹕",
	" is your code", "seed: abc ", "words:\n", "1234 is your ", "codes: a1b2c3 ", "api codes:\na1b2c3\n",
	"00000000: 7061 7373 776f 7264 3d61 3161 3161 3161  x\n", "0000: 70 61 73 73\n", " 70 61 73 73 77 6f 72 64\n",
	"read pw <<<a ", "read pw <<A\n", "read pw <<A\nA\n", "read <<<", `"a" | ConvertTo-SecureString `, "sshpass -f <(echo ", "radius server a\n key 7 a\n", "client {\n secret a\n",
	`(setf (gethash "password" h) "a`, "(setf ", `[:a :password] "`, `password="a".concat("b"`, `.concat("a"`, `password="".concat(`,
	"a,b=", "a, password = 'a', ", "(a,b)=(", "a,b,c,d,e,f,g,h=%w[",
	`"a", forKey: "password", `, `fill_in "password", with: `, `btoa("a:b`, `set("a","password","b`, `getBytes("a:b`, "read_until(write(", "a{b} =",
	" password\n---\na\n", "┌─password─┐\n│ a1b2 │\n", "┌─", "1) \"password\"\n", "1) \"password\"\n2) \"a\"\n",
	"password? ", "password? a\n", "password? › ", "password for:\n", "password to a:\na1b2\n", "d'a'b'c ",
	"stringData:\n a: b\n", "stringData:\n", "[+] A\\b:c ", "aad3b435b51404eeaad3b435b51404ee:a\n", "cat > pw <<<a ", "'a' > pw ", "passwordeval = echo ", " //a:b@c ",
	`eq "a" `, `is a, "b" `, `is a, "`, `password.eq "`, `:password, "`, `:password, "a" `, `password { return "`, `password() { "a" } `, `(:password) { "`, `enter "a" in "`, `in "password" with "a" `, `assertEquals "a" "$b" `, `assertEquals "a`, `login "a", "`,
	`password | Should -Be "a`, "su -c 'a' ", "su -c '", "sh -c -c ", "OTP 123456 ", "seed: ABC2 ", "a * b *\n", "a * b1 *", "password={a}b", "={a}b", `write("Password")read(0,"a",`, `CWJAP="a","b"`, "pin code 1234, ", "código 1234 ", "código de ", "验证码是", "using token a1b2c3 ", "set psksecret ENC a1b2\n", "${A}", "echo ${A} ",
	"send-keys ", "send-keys a Enter ", "send-keys 'sudo' Enter 'a1b2' Enter\n", "send-keys 'a", "password was set to a1b2 ", "a:b&c@d:", "send-keys \"a' ",
	"$ pass show x\na\n", "$ a\n", "$ sudo pass sudo ", "$ sudo pass\n", "$ a \\\n", "> a \\\n", "$ $(", "$ $(a)", "$ echo $TOKEN$", "> $ a\n", "\u276f a\n", "\u279c a git:(", "a@b ~ > ", "> select password ",
	"$ kubectl get secret ", "$ pass show x\n> a\n", "$ jq password password\n", "+ a\n", "$ \"", "$ a|", "$ sh -c 'sh -c \"", "In [1]: a\n", `{"cmd":"pass show x","stdout":"`, `"cmd":"`, `"cmd":"pass show x",`, `"cmd":"pass show x","stdout":[`, "cmd:[", "stdout:[", "<a>$ ", "\u2570\u2500$ ", `$password -eq "`, " -eq \"", "use a as the password ", "use a as password\n", ".logon a/b,c\n", "set-item env:TOKEN a\n", "token=$(cat <<A\n", "token=$(cat <<'A'\n", "${token:+", "a> b\n    -> c\n", "    -> ", "$ a\n> b\n", "$ pass show x\n# a\n",
	"password(Some(\"a\".b", "password(\"a\".b(),", "PASSWORD a = a1b2\n", "a,b='a',f(", "a,b=f((",
	`"abcd" == password `, `"abcd" != `, "a -u b -p ", "a -u b -p cde ", "-u a -p ", "mapKey=a1b2c3d4e5f6g7h8 ", `<meta name="a" content="b" `, `<meta content="b"`, `("password" , "a`, `"a" , `, "secret key:a1b2c3\n",
	"net use a\\b /user: ", "IDENTIFIED WITH a_b AS ", "0123456789abcdef0123456789abcdef:", "$DCC2$1#a#0123456789abcdef0123456789abcdef:a\n", "value = a(b) ", "value: Aa<", "value={a} ", "$krb5tgs$", "token=A{a64f992 ", "command: a b ",
	`assertEquals("a", password`, `expect(password).to.be.eq("a`, ".to.be.is(", `a!("`, `setopt(PASSWORD, "`, "-u a -p ", `"-u","a","-p","`,
	"echo a|read password ", "echo a|a unlock ", "fscrypt <<A\n", "pw -h 0 <<<", "steamcmd +login a ", "a secret,data=", "mysql -p$(echo ", "dscl -passwd a b c ",
	"case $password in ", "case $password in a) ;; ", "esac case $password in a|", "'pass''word'=", "a''''=", "[ \"abcd\" = \"$PASSWORD", "x\"a\" = ", " -ceq \"", "using token a1b2c3d4e5f6g7h8 ",
	"0123456789abcdef:0123456789abcdef0123456789abcdef:",
	"password is generated for a: ", "password is generated ", "changed password from a to ", "password (a1b2c3", "password `a", "password REG_SZ ", "334 UGFzc3dvcmQ6\n", "://a/reset/", "/reset/a1b2c3d4e5f6a7b8/",
	"PASS a7b8c9d\n", "> PASS a\n", `"password", "=", "a",`, `("a", "=", `, "Input Password    id:pw    a\n", "Set Variable    ", "4111 1111 1111 1111 ", "4111 1111 ", "4111111111111111|12|27|123 ",
	"codes:\n1. a1b2c3d\n", "codes: 1. ", "user=ann:a7b8c9d ", ": PSK 0sa ", "vmess://a ", "result=", "state=a9Fk2x7Qz7Rt5Vb8w3q1 ", "nonce=", "*2\n$4\nAUTH\n$9\na\n", "C: a1 LOGIN ann a\n", "a:P@b@", "a:@@@@", "a:b@c@d:",
	"://aB9/cD8/", "password is aB9/cD8/eF7 ", "password's a7b8c9d ", "the password, a7b8c9, ", "the password, which is ", "a7b8c9 is the password ", "type a7b8c9 at the password prompt ", "password ask enter for the ",
	"maiden name is a ", "security answer is a ", "answer to my security question ", "पासवर्ड a है ", "كلمة السر هي a ", "parola este a ", "geslo je ", "heslo ", "PASS ", "sid=", `password=a"b" `,
	"MOVE 'a' TO b-password ", "password PIC X VALUE 'a' ", "password:\n  type: string\n  example: a\n", "  example: a\n", "ftp> user ann a\n", "ftp> user ",
	`<a name="password">\n<b name="a.value">a</b>`, `<a name="password"><b name="a.value">`, "--password <<< a ", "otp is 123 456 ", "text: a b ", "a text: b ", "[BasicAuth]\na: b\n", "\"--password\",\n", "\"--password\",\n\"a\",\n",
	`password=a ? "b" : "c",`, `password=a or "`, `password=f("x") or "a`, `password=("a",(`, `password = a ("`, "${A-", "${TOKEN-a", `["--token","--a",`, `password=a or "b"or "c"`,
	"printf}", "printf,", "stringData:}", "name=token::>is</user:,", "token:}pass@</label>?", "password:<b>", "* \"", "<label>password</label><code>", "a_password is ", "API_KEY to ", "\nset password ", "R1#enable secret ",
	`password: a'b`, "PW='a'\\''", "passphrase = f'", "passphrase =", "passphrase=a b", "passphrase: a'b", "token is " + strings.Repeat("a1B2c3D4e5", 30) + "( ", "password token is `" + strings.Repeat("a1B2c3D4e5", 30), "passphrase=a;", "password=r#\"a", "apiKey is ", "the apiKey is a ", "a-key is ", "Key ", "passwd ann\na1b2c3\n", "passwd a\n", "\npassword: a bc de fg ", "\npassword: ab cd ef gh\n", "arn:secret:", "arn:a:secret:a", `"a".b(), `, `"password".b(),"`, `f(a,"password",{`,
	"password:</b><i>ghp_abc1rintf", "password:</b><i>eyJaaaaaaaa.", "passphrase =(a@nt {\n secret a", "d:</b><heslo ", "|\n {\"a\":\"{\\\"tokens:\n - ", "password:</b>UABBAFMAUwBXAE8AUgBEAD0AaAB1AG4Aglpat-1aB2", "tokens:\n - a: |\n \x1b[m",
	"(password)SELECT 'a',", "password)select ", "password{\"a", "password{\"a\"}", "echo a |\n", "| \n", "read -s a\nb\n", "line vty\npassword a\n", "type a into the password ", "fill a password with ", "password:a\nagain:b\n", "password=$(or a,", "user/password: a / b ", "token=[}-a'", "PASSWORD=a'a, ",
	"+ password a\n", "# name,password\n", "    14\tpassword a\n", "14: ", "token like \"a\" ", "password, answer a, ", "$(a $(",
}

// stepsOf returns a function that counts the blocks of statements that size bytes of a
// repeated unit make the redactor run, as the coverage tool counts them: time is less
// exact, and depends on the machine. Two processes of testdata/steps do it.
func stepsOf(t *testing.T) (count func(unit string, size int) int) {
	dir := t.TempDir()
	program := filepath.Join(dir, "steps")
	if out, err := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=./...", "-o", program, "./testdata/steps").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	type process struct {
		in  io.Writer
		out *bufio.Reader
	}
	const processes = 2
	free := make(chan process, processes)
	for range processes {
		c := exec.Command(program)
		c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOCOVERDIR="+dir)
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		})
		free <- process{in, bufio.NewReader(out)}
	}
	run := func(unit string, size int) (steps int) {
		p := <-free
		defer func() { free <- p }()
		fmt.Fprintf(p.in, "%d %q\n", size, unit)
		if _, err := fmt.Fscanln(p.out, &steps); err != nil {
			t.Errorf("%q: %v", unit, err)
		}
		return steps
	}
	none := run("a", 0) // the cost of counting
	return func(unit string, size int) int {
		steps := run(unit, size) - none
		if steps < size {
			t.Errorf("%q: %d steps for %d bytes", unit, steps, size)
		}
		return steps
	}
}

// TestStepsAreLinear: a hostile text of twice the length needs about twice the steps.
func TestStepsAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs this package once for each text")
	}
	count := stepsOf(t)
	const size = 8 << 10
	var wg sync.WaitGroup
	running := make(chan struct{}, 2)
	for _, unit := range hostileUnits {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			once, twice := count(unit, size), count(unit, 2*size)
			if 4*twice > 9*once {
				t.Errorf("%q: %d steps for %d bytes, %d for %d", unit, once, size, twice, 2*size)
			}
			if perByte := once / size; perByte > maxSteps {
				t.Errorf("%q: %d steps a byte", unit, perByte)
			}
		})
	}
	wg.Wait()
}

// TestCombinationsAreLinear looks for combinations of the hostile texts and of parts of
// them whose steps grow with the square, among those whose time seems to.
func TestCombinationsAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("redacts thousands of hostile texts")
	}
	texts, seed := 1000, uint64(1)
	if os.Getenv("SOAK") != "" {
		texts, seed = 300_000, rand.Uint64()
		t.Logf("seed %d", seed)
	}
	r, err := New(Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	count := sync.OnceValue(func() func(string, int) int { return stepsOf(t) })
	random := rand.New(rand.NewPCG(seed, 0))
	took := func(unit string, size int) time.Duration {
		text := []byte(strings.Repeat(unit, size/len(unit)))
		least := time.Duration(math.MaxInt64)
		for range 2 {
			began := time.Now()
			r.AppendText(nil, text)
			least = min(least, time.Since(began))
		}
		return least
	}
	for range texts {
		unit := ""
		for range 1 + random.IntN(4) {
			part := hostileUnits[random.IntN(len(hostileUnits))]
			if random.IntN(4) == 0 {
				from, to := random.IntN(len(part)+1), random.IntN(len(part)+1)
				part = part[min(from, to):max(from, to)]
			}
			unit += part
		}
		const size = 16 << 10
		if unit == "" || took(unit, size) < 5*time.Millisecond || took(unit, 4*size) < 6*took(unit, size) {
			continue
		}
		const long = 2 * size // up to here, some texts take more a byte the longer they are
		if once, four := count()(unit, long), count()(unit, 4*long); four > 9*once {
			t.Errorf("%q: %d steps for %d bytes, %d for %d", unit, once, long, four, 4*long)
		}
	}
}

// TestSpent: a text in which looking for the ends of things does not end is hidden whole,
// since what is in it is not known. So is one that has such a text in a string in a string,
// and one whose strings are in strings again and again.
func TestSpent(t *testing.T) {
	r, err := New(Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"{\"a\":\"{\\\"tokens:\n - ", "[redacted password=$(echo ", "$\"a@{\"aa_='\"'\"'\"\".\"{\"\"tokens:\n - me:[;a\\"} {
		text := []byte("plain " + strings.Repeat(unit, 256<<10/len(unit)) + " correct horse")
		for levels := range 4 {
			if got := string(r.AppendWhole(nil, text)); strings.Contains(got, "plain") || strings.Contains(got, "horse") {
				t.Errorf("%q, quoted %d times: %.80s … %.80s", unit, levels, got, got[max(0, len(got)-80):])
			}
			text = strconv.AppendQuote(nil, string(text))
		}
	}
}

// TestNotSpent: texts of people stay readable, also as a string in a string in a string.
func TestNotSpent(t *testing.T) {
	r, err := New(Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python.go", "credential/scan.go", "../docs/approval.md"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat(append(file, "\nFuse\n"...), 256<<10/len(file))
		for levels := range 4 {
			if got := r.AppendWhole(nil, text); !bytes.Contains(got, []byte("Fuse")) {
				t.Errorf("%s, quoted %d times: %.80s", name, levels, got)
			}
			text = strconv.AppendQuote(nil, string(text))
		}
	}
}

// maxSteps limits the blocks of statements run for a byte of a hostile text.
const maxSteps = 400
