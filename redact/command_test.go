package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"auditproxy/redact"
)

// commandLines have one secret each, which is hunter2, and nothing else that
// is hidden.
var commandLines = []string{
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

// TestCommandLines hides the secret in each, alone, between other commands and
// in a string in a string, and nothing of what is around it.
func TestCommandLines(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, line := range commandLines {
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

// TestSecretsBesideTheirNames has arguments in which something other than the
// name of its own member says that a value is a secret.
func TestSecretsBesideTheirNames(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	const digest = `{"len":7,"hmac":""}`
	for _, tt := range []struct{ in, want string }{
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
		{`{"args":["mysql","-phunter2","db"]}`, `{"args":["mysql","-p[redacted len=7 hmac=]","db"]}`},
		{`{"args":["curl","-u","ann:hunter2","-v"]}`, `{"args":["curl","-u","ann:[redacted len=7 hmac=]","-v"]}`},
		{`{"args":["/usr/bin/sshpass","-p","hunter2","ssh","-p","22","h"]}`, `{"args":["/usr/bin/sshpass","-p",` + digest + `,"ssh","-p","22","h"]}`},
		{`{"args":["docker","login","-p","hunter2"]}`, `{"args":["docker","login","-p",` + digest + `]}`},
		{`{"args":["docker","run","-p","80:80"]}`, `{"args":["docker","run","-p","80:80"]}`},
		{`{"cmd":"mysql","args":["-phunter2"]}`, `{"cmd":"mysql","args":["-p[redacted len=7 hmac=]"]}`},
		{`{"command":"redis-cli","args":["-a","hunter2"]}`, `{"command":{"len":9,"hmac":""},"args":["-a",` + digest + `]}`},
		{`{"args":["sh","-c","mysql -phunter2"]}`, `{"args":["sh","-c","mysql -p[redacted len=7 hmac=]"]}`},
		{`{"args":["--dbpass","hunter2"]}`, `{"args":["--dbpass",` + digest + `]}`},
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
