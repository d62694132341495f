package redact

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// gates compares the findings in a text with those when nothing is skipped.
type gates struct{ shut, open *pass }

func newGates(t testing.TB) gates {
	r, err := New(Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	g := gates{newPass(r), newPass(r)}
	g.open.scan.Open = true
	return g
}

func (g gates) check(t testing.TB, text string) {
	t.Helper()
	shut := slices.Clone(g.shut.scan.Find([]byte(text)))
	if open := g.open.scan.Find([]byte(text)); !slices.Equal(shut, open) {
		t.Errorf("in %q, %v are found, and %v when nothing is passed over", text, shut, open)
	}
}

// optionForms are forms of arguments that can be a secret.
func optionForms() []string {
	all := []string{
		"-sSu ann:hunter2", "-S", "--stdin", "--password-stdin", "--with-token", "<<< hunter2", "login hunter2", "auth -p hunter2", "login -phunter2",
		"config user.password hunter2", "configure set password hunter2", "set password hunter2", "add-authtoken hunter2", "AUTH hunter2",
		"requirepass hunter2", "masterauth hunter2", "by hunter2", "ann/hunter2@db", "corp/ann:hunter2@h", "-b file ann hunter2", "-nb ann hunter2",
		"user ann hunter2", `use Z: \\h\share hunter2`, "h login ann password hunter2", "API_TOKEN hunter2", "-g API_TOKEN hunter2", "hunter2", "-", "- ann", "",
	}
	for _, f := range argv.Flags {
		secret := map[argv.Form]string{argv.AfterColon: "ann:hunter2", argv.AfterPercent: "ann%hunter2", argv.AfterComma: "ann,hunter2", argv.AfterEqual: "k=hunter2", argv.BeforeAt: "ann:hunter2@h"}[f.Form]
		if secret == "" {
			secret = "hunter2"
		}
		for _, between := range []string{"", " ", "=", " '", "\t", "\\\n"} {
			all = append(all, f.Name+between+secret)
		}
	}
	return all
}

// TestGatesCommands finds the same in every command line whether or not a
// program and an option are looked for first.
func TestGatesCommands(t *testing.T) {
	g := newGates(t)
	names := strings.Fields("password Password PASSWORD passphrase Passphrase passcode Passcode pwd PASS")
	for _, row := range argv.ProgramNames {
		if row.Names != prose.Passwords && row.Names != prose.Others { // TestGatesSentences has them
			names = append(names, strings.Fields(row.Names)...)
		}
	}
	forms := optionForms()
	for _, name := range names {
		for i, form := range forms {
			line := name + " " + form
			g.check(t, line)
			for k, around := range []string{
				"/usr/bin/%s", "%s x", "x\n%s\ny", "x;%s", "x|%s", "x&&%s", "$(%s)", "`%s`", "x \t%s ", `"%s"`, "'%s'", "sh -c '%s'", `{"a":"%s"}`,
				"echo a | %s", `a\n%s`, `\"%s\"`, `C:\bin\%s`, "é%s", "-%s", "x%s", "_%s", "(%s)", "[%s]", "<%s>", "A=%s",
			} {
				if (i+k+len(name))%4 == 0 { // all of them, around one form or another
					g.check(t, strings.Replace(around, "%s", line, 1))
				}
			}
			rest := " " + form
			for _, l := range []string{name + ".exe" + rest, strings.ToUpper(name) + rest, name + "\t" + form, name + "\n" + form, name + "=" + form, name + `" "` + form,
				name + `","` + strings.ReplaceAll(form, " ", `","`), name + `\" \"` + form, name + "é" + rest, name + "1" + rest, name + `\` + rest, `/x/` + name + `.exe` + rest} {
				g.check(t, l)
			}
			g.check(t, form+" "+name)
			g.check(t, line+" "+names[i%len(names)]+" "+forms[(i*7)%len(forms)])
		}
	}
}

// TestGatesSentences finds the same in every sentence whether or not a noun is
// looked for first.
func TestGatesSentences(t *testing.T) {
	g := newGates(t)
	for _, noun := range append(strings.Fields(prose.Passwords+" "+prose.Others), "пароль", "密码", "パスワード", "비밀번호", "hasło", "şifre", "lösenord") {
		for _, form := range []string{" is hunter2", " is swordfish.", " for ann is hunter2", " to hunter2", ": hunter2", "\nhunter2", " hunter2", " = hunter2", " with ann / hunter2", " in as ann:hunter2", "：hunter2", "은 hunter2", " details: ann / hunter2", ""} {
			for _, around := range []string{
				"%s", "the %s", "set the %s x", "x\n%s\ny", "user ann, %s", "with %s", "my_%s", "wifi-%s", "-%s", ".%s", "x%s", "é%s", "密%s", "(%s)", `"%s"`, `{"a":"%s"}`, `\"%s\"`, "/%s", `\%s`, "1%s",
			} {
				g.check(t, strings.Replace(around, "%s", noun+form, 1))
			}
		}
	}
}

// TestGatesFormats finds the same around each word of a format at any position
// in a text.
func TestGatesFormats(t *testing.T) {
	g := newGates(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func(set uint8, n int) string {
		var chars []byte
		for c := byte(33); c < 127; c++ {
			if formats.Sets[set].Has(c) {
				chars = append(chars, c)
			}
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = chars[rnd.IntN(len(chars))]
		}
		return string(b)
	}
	words := wordsOf(&formats.Words)
	for _, word := range slices.Sorted(maps.Keys(words)) { // the same tokens in every run
		text := words[word]
		for k := formats.First[word]; k < formats.First[word+1]; k++ {
			f := &formats.Formats[k]
			text := text
			if f.Literal != "" {
				text = f.Literal
			}
			between := ""
			if f.Assigned {
				between = "="
			}
			before := ""
			if f.MaxBefore > 0 {
				before = some(f.Before, int(f.MinBefore))
			}
			for at := range 21 {
				for _, pad := range []string{" ", "a", "7", "é", "/", "s", "K", "-", text[:1], text[:min(len(text), 2)]} {
					g.check(t, strings.Repeat(pad, at)[:at]+before+text+between+some(f.After, int(f.MinAfter)))
				}
			}
			for range 40 {
				token := before + text + between + some(f.After, int(f.MinAfter))
				for _, around := range []string{"%s", "%sx", "%s é", "%s\n", "see %s.", `"%s"`, "x/%s", "é%s", "%s|a", "(%s)"} {
					g.check(t, strings.Replace(around, "%s", token, 1))
				}
				g.check(t, strings.ToUpper(token))
				g.check(t, token[rnd.IntN(len(token)):])
			}
		}
	}
}

// wordsOf returns the words of a.
func wordsOf(a *lex.Automaton) map[int]string {
	all := make(map[int]string)
	var walk func(state uint16, word string)
	walk = func(state uint16, word string) {
		if a.Out[state] > 0 {
			all[int(a.Out[state])-1] = word
		}
		for e := a.First[state]; e < a.First[state+1]; e++ {
			walk(a.Next[e], word+string(a.Label[e]))
		}
	}
	for c, state := range a.Root {
		if state > 0 {
			walk(state, string([]byte{byte(c)}))
		}
	}
	return all
}

// CommandLines have one secret each, which is hunter2, and nothing else that
// is hidden.
var CommandLines = []string{
	"PGPASSWORD=hunter2 psql -h db", "DBPASSWORD=hunter2 x", "SSHPASS=hunter2 sshpass -e ssh h", "accesstoken=hunter2", "run --dbpass hunter2 -v",
	"curl -u ann:hunter2 https://h/", "curl -uann:hunter2 https://h/", "curl -sSu ann:hunter2 https://h/", "curl --user ann:hunter2 https://h/",
	"curl --user=ann:hunter2 https://h/", "curl -U ann:hunter2 -x http://p:1 https://h/", "curl --proxy-user 'ann:hunter2' https://h/",
	`curl -u "ann:hunter2" https://h/`, "curl -x ann:hunter2@proxy:3128 https://h/", "/usr/bin/curl -u ann:hunter2 h", "curl -X POST -d 'a;b|c' -u ann:hunter2 h",
	"curl \\\n  -u ann:hunter2 \\\n  https://h/", "curl -H 'X-Api-Key: hunter2' h", "curl -b session=hunter2 h",
	"mysql -u root -phunter2 db", "mysqldump -phunter2 --all-databases > x.sql", "mysql -p'hunter2' db", "sudo mysql -phunter2", "mariadb -uroot -phunter2",
	"bash -c 'mysql -phunter2 -e x'", `bash -c "mysql -phunter2 -e x"`, "cd /x && mysqladmin -phunter2 status; ls -p y", "x | mysql -phunter2",
	"sshpass -p hunter2 ssh -p 22 ann@h", "sshpass -phunter2 ssh h", "sshpass -p 'hunter2' ssh h", `sshpass -p "hunter2" ssh h`,
	"redis-cli -a hunter2 ping", "redis-cli -h h AUTH hunter2", "redis-cli --pass hunter2 ping", "redis-cli CONFIG SET requirepass hunter2",
	"docker login -u ann -p hunter2 registry.example.com", "docker login --password hunter2 -u ann", "podman login -p=hunter2 r", "echo hunter2 | docker login --password-stdin -u ann",
	"az login -u ann -p hunter2", "helm registry login -u ann -p hunter2 r",
	"mongosh -u ann -p hunter2 --host h", "mongodump --password hunter2", "mongo -phunter2",
	"psql postgres://ann:hunter2@h/db", "psql 'host=h password=hunter2 user=ann'",
	"openssl rsa -in k.pem -passin pass:hunter2", "openssl enc -aes-256-cbc -k hunter2 -in x", "openssl pkcs12 -export -passout pass:hunter2 -out x",
	"wget --user=ann --password=hunter2 https://h/", "wget --http-password hunter2 https://h/",
	"svn co --username ann --password hunter2 https://h/", "htpasswd -b /etc/htpasswd ann hunter2", "htpasswd -nb ann hunter2",
	"ldapsearch -x -D cn=ann -w hunter2 -b dc=x", "ldappasswd -s hunter2 -x", "smbclient -U ann%hunter2 //h/share", "smbclient --user=ann%hunter2 //h/share",
	"kubectl --token hunter2 get pods", "kubectl --token=hunter2 get pods", "kubectl create secret generic db --from-literal=pw=hunter2",
	"kubectl create secret generic db --from-literal=some=hunter2", "helm install x --set db.password=hunter2",
	"aws configure set aws_secret_access_key hunter2", "git config user.password hunter2", "npm config set //registry.example.com/:_authToken hunter2",
	"git -c http.extraHeader='Authorization: Basic YW5uOmh1bnRlcjI=' clone https://h/", "git clone https://ann:hunter2@h/r.git",
	"tmux set-environment -g API_TOKEN hunter2", "tmux setenv API_TOKEN hunter2", "setx DB_PASSWORD hunter2",
	`net use Z: \\h\share hunter2 /user:ann`, "net user ann hunter2 /add", "sqlplus ann/hunter2@db", "sqlcmd -S h -U sa -P hunter2",
	"zip -P hunter2 x.zip y", "7z a -phunter2 x.7z y", "lftp -u ann,hunter2 h", "snmpwalk -v3 -A hunter2 h",
	"echo hunter2 | sudo -S ls", "echo 'hunter2' | sudo -kS ls", "printf 'hunter2' | passwd --stdin", "echo ann:hunter2 | chpasswd", "sudo -S ls <<< hunter2",
	"vault login hunter2", "ngrok config add-authtoken hunter2", "cargo login hunter2", "twine upload -u __token__ -p hunter2 dist/x",
	"wmiexec.py corp/ann:hunter2@10.0.0.1", "xfreerdp /u:ann /p:hunter2 /v:h", "machine h login ann password hunter2", "nmcli dev wifi connect home password hunter2",
	"ALTER USER ann WITH PASSWORD 'hunter2'", "CREATE USER ann IDENTIFIED BY 'hunter2'", "create user ann identified by hunter2",
	`["mysql","-phunter2","db"]`, `["curl", "-u", "ann:hunter2", "https://h/"]`, `["sshpass","-p","hunter2","ssh"]`, `[\"mysql\",\"-phunter2\"]`, "['redis-cli', '-a', 'hunter2']",
	"<password>hunter2</password>", "<a><dbPassword>hunter2</dbPassword></a>", "<Token>\n    hunter2\n</Token>", "<password><![CDATA[hunter2]]></password>",
	`<string name="api_key">hunter2</string>`, `<add key="Password" value="hunter2" />`, "<key>DB_PASSWORD</key>\n<string>hunter2</string>", `<x password="hunter2"/>`,
	"[db]\npassword = hunter2\nuser = ann", "password: hunter2\nuser: ann", "password: |\n  hunter2\nuser: ann", "password: >-\n  hunter2\nuser: ann", "password:\n  hunter2\nuser: ann",
	"- name: DB_PASSWORD\n  val: hunter2\n", `[{"name":"DB_PASSWORD","data":"hunter2"}]`, `{"key":"PASSWORD","val":"hunter2"}`, `{\"key\":\"PASSWORD\",\"val\":\"hunter2\"}`,
	`["X-Api-Key","hunter2"]`, `[["Accept","x"],["X-Api-Key", "hunter2"]]`, `System.setProperty("DB_PASSWORD", "hunter2")`, "os.environ['DB_PASSWORD'] = 'hunter2'",
	"X-Api-Key: hunter2\nAccept: x", "Proxy-Authorization: Basic hunter2", "apiVersion: v1\nkind: Secret\ndata:\n  extra: hunter2\ntype: Opaque",
	`{"password":"hunter2"}`, `{"db":{"pgpassword": "hunter2"}}`, "passphrase: hunter2", `"password":
  "hunter2"`, "export const dbPassword = `hunter2`", "$env:DB_PASSWORD = 'hunter2'", "-Djavax.net.ssl.keyStorePassword=hunter2", "keytool -storepass hunter2 -list",
}

// gateTexts are texts of all sorts, with secrets and without.
func gateTexts(t testing.TB) []string {
	var all []string
	for _, rule := range leakRules(t) {
		for _, sample := range rule.Positive {
			all = append(all, sample.Text)
			all = append(all, sample.Secrets...)
		}
		all = append(all, rule.Negative...)
	}
	for _, file := range []string{"testdata/ordinary.txt", "testdata/positions.txt", "testdata/typed.txt", "testdata/typed.jsonl", "testdata/readable.txt", "names/names.txt"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(string(b), "\n")...)
	}
	all = append(all, CommandLines...)
	for _, name := range []string{"PASSWORD", "with password", "db_token", "Bearer", "basic"} {
		for _, between := range []string{" ", "\t", "\n", "  ", "\r\n", ": "} {
			all = append(all, name+between+"'hunter2'", name+between+`"hunter2"`, name+between+"hunter2hunter2XX")
		}
	}
	return all
}

// TestGatesTexts finds the same in texts of all sorts.
func TestGatesTexts(t *testing.T) {
	g := newGates(t)
	for _, text := range gateTexts(t) {
		for _, around := range []string{"%s", "cd /srv\n%s\nls -l", "true; %s", " %s ", "é%s", "a%s"} {
			g.check(t, strings.Replace(around, "%s", text, 1))
		}
		g.check(t, fmt.Sprintf(`{"a":%q}`, text))
	}
}

// FuzzGates finds the same in any text.
func FuzzGates(f *testing.F) {
	for _, text := range gateTexts(f) {
		f.Add(text)
	}
	g := newGates(f)
	f.Fuzz(func(t *testing.T, text string) { g.check(t, text) })
}

// TestHostileTextsAllocateLittle guards the names in hostile texts: what is
// decoded, folded or compared for each of them needs memory once, not once a
// name.
func TestHostileTextsAllocateLittle(t *testing.T) {
	r, err := New(Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	const size, most = 16 << 10, 200
	for _, unit := range slices.Concat(hostileUnits, []string{"password%3Dname=password ", `name: "a,\\isql `}) {
		text := []byte(strings.Repeat(unit, size/len(unit)))
		if n := testing.AllocsPerRun(1, func() { r.AppendText(nil, text) }); n > most {
			t.Errorf("%q: %.0f allocations in %d bytes, at most %d are expected", unit, n, size, most)
		}
	}
}
