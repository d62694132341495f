package argv

import (
	"bytes"
	"strings"
	"sync"

	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// Programs is a set of kinds of programs that accept a secret as an argument.
type Programs uint64

const (
	webClient    Programs = 1 << iota // -u USER:SECRET
	mysql                             // -pSECRET
	dashP                             // -p SECRET, -pSECRET
	registry                          // dashP after "login"
	redis                             // -a SECRET, AUTH SECRET
	ldap                              // -w SECRET
	samba                             // -U USER%SECRET
	openssl                           // -k SECRET
	archive                           // -pSECRET, -hpSECRET
	upperP                            // -P SECRET
	snmp                              // -A SECRET, -X SECRET
	dashA                             // -a USER:SECRET
	ftp                               // -u USER,SECRET
	oracle                            // USER/SECRET@DATABASE
	htpasswd                          // -b FILE USER SECRET
	netUser                           // user NAME SECRET, use SHARE SECRET
	authtoken                         // authtoken SECRET
	kubectl                           // --from-literal=KEY=SECRET
	settings                          // a setter after "config"
	settingsSet                       // a setter after "set"
	Machine                           // a setter after "login"
	setter                            // NAME SECRET
	stdin                             // reads a secret with sudo -S, --password-stdin and the like
	sql                               // IDENTIFIED BY SECRET
	impacket                          // DOMAIN/USER:SECRET@HOST
	dashT                             // -t SECRET
	xfreerdp                          // /p:SECRET
	ldapPasswd                        // -s SECRET, -a SECRET
	chpasswd                          // stdin without an option
	secretWord                        // chpasswd after "secret"
	sshKeygen                         // -N SECRET
	keychain                          // -w SECRET
	body                              // bodyFlag after "secret"
	bodyFlag                          // -b SECRET
	assigns                           // NAME=SECRET after "put", "write" or "secrets"
	puts                              // a setter after "put" or "set"
	positional                        // SECRET
	thirdWord                         // a word, NAME SECRET
	secondWord                        // NAME SECRET
	secureString                      // SECRET, -String SECRET
	encrypts                          // encrypt_string SECRET, --plaintext SECRET, --encrypt SECRET SECRET
	basicAuth                         // http-basic.HOST NAME SECRET
	flagUse                           // has flags in uses
	verbUse                           // has verbs in uses
	usesNow                           // has a secret in uses without either
	account                           // dashP after "create", "update" and the like
	tokenLogin                        // dashT after "login" or "publish"
	registryData                      // the options of Windows' reg
	atDatabase                        // USER/SECRET@DATABASE, with the database
	writes                            // reads a secret if an argument is the name of one
	edits                             // s/NAME/SECRET/
	verbWord                          // not a program: required by verbUse and account
	loginWord                         // not a program: required by registry, tokenLogin and machine
	settingWord                       // not a program: required by settings
	setWord                           // not a program: required by settingsSet
	stdinWord                         // no program: the end of --password-stdin, --with-token and --passphrase-fd
	Prints                            // no program: what it is given is for others to read or is typed
	Echoes                            // no program: what it is given may be piped to another one
	secretsWord                       // not a program: required by secretWord and body
	PassWord                          // not a program: prose for a password
	ProseWord                         // not a program: prose for another secret
	deviceWord                        // not a program: required by verbUse, unless it starts a line

	notPrograms = verbWord | loginWord | settingWord | setWord | stdinWord | Prints | Echoes | secretsWord | PassWord | ProseWord | deviceWord
)

// ProgramNames are the programs by kind.
var ProgramNames = [...]struct {
	of    Programs
	Names string
}{
	{webClient, "curl curlie ctr govc turnserver turnadmin"},
	{mysql, "taos mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mysqlpump mysqlslap mysqlbinlog mariadb mariadb-dump mariadb-admin " +
		"mariadb-import mariadb-check mysqlsh mydumper xtrabackup mariabackup"},
	{dashP, "sshpass mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop smbmap crackmapexec netexec nxc cme " +
		"useradd usermod hydra medusa ncrack steghide evil-winrm enum4linux-ng ldapdomaindump tdload psexec PsExec psexec64 rdesktop cqlsh twine mycli pgcli rabbitmqadmin influx wpscan plink pscp psftp putty"},
	{registry | secretWord, "docker podman"},
	{registry, "nerdctl buildah skopeo crane helm oras cf jfrog jf argocd ibmcloud rancher regctl expo pio platformio cosign notation"},
	{registry | account, "az"},
	{registry | kubectl, "oc"},
	{account, "airflow doveadm caddy dotnet supabase nuget"},
	{tokenLogin, "glab k6 uv"},
	{redis, "redis-cli valkey-cli keydb-cli redis-benchmark valkey-benchmark"},
	{ldap, "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldapmodrdn ldapcompare ldapexop ldapvi dsconf dsidm"},
	{ldap | ldapPasswd, "ldappasswd"},
	{samba, "smbclient rpcclient ldbadd ldbdel ldbedit ldbmodify ldbsearch"},
	{openssl, "openssl"},
	{archive, "7z 7za 7zz 7zr rar unrar"},
	{upperP, "zip unzip zipcloak sqlcmd bcp osql isql isql64 tsql mosquitto_pub mosquitto_sub mosquitto_rr ipmitool ipmi-power fcrackzip gobuster"},
	{snmp, "snmpwalk snmpget snmpset snmpbulkwalk snmpgetnext snmptrap snmptable snmpbulkget snmpdf snmpdelta snmpinform snmpnetstat snmpps snmpstatus snmptest snmptranslate snmpusm snmpvacm " +
		"encode_keychange net-snmp-create-v3-user"},
	{dashA, "miniserve http https httpie xh xhs ab hey check_http check_curl"},
	{ftp, "lftp ncftp ncftpput ncftpget"},
	{oracle, "sqlplus sqlldr impdp expdp rman sqlcl exp imp"},
	{htpasswd, "htpasswd"},
	{netUser | samba, "net NET"},
	{assigns, "nomad vault bao fly flyctl supabase infisical teller"},
	{assigns | puts, "doppler"},
	{secretWord | body | stdin, "gh"},
	{secretWord, "wrangler vercel secret-tool pass gopass passage"},
	{secretWord | puts, "glab"},
	{sshKeygen, "ssh-keygen"},
	{keychain | dashP | upperP, "security"},
	{puts, "racadm tinc consul netlify redis-cli valkey-cli travis wp chamber credstash cf"},
	{puts, "defaults"},
	{puts | setter, "crudini augtool"},
	{writes, "tee"},
	{edits, "sed gsed perl"},
	{Echoes, "echo printf yes"},
	{Prints, "printf base64 send-keys esac REG_SZ REG_EXPAND_SZ"},
	{registryData, "reg"},
	{atDatabase, "CONNECT CONN conn connect exp imp sql"},
	{puts | webClient, "etcdctl"},
	{setter, "rclone"},
	{positional, "mkpasswd"},
	{secureString, "ConvertTo-SecureString convertto-securestring"},
	{thirdWord, "rabbitmqctl"},
	{secondWord, "wpa_passphrase"},
	{encrypts, "ansible-vault caddy qpdf"},
	{authtoken, "ngrok"},
	{kubectl | settings, "kubectl"},
	{kubectl, "k3s microk8s kustomize"},
	{dashT, "doctl gitlab-runner buildkite-agent codecov coveralls"},
	{xfreerdp, "xfreerdp wfreerdp xfreerdp3 freerdp"},
	{settings | settingsSet, "npm pnpm"},
	{settings | secretWord, "gcloud"},
	{settings | basicAuth, "composer bundle"},
	{settings | basicAuth | dashP, "poetry"},
	{settings, "git yarn aws tccli pip pip3 conda hub pulumi kaggle snyk"},
	{settings | puts, "airflow"},
	{Machine, "machine"},
	{setter, "puthash hash-table-set! pkgs.writeText writeText setenv SetEnv set-environment setx setg nmcli add_header proxy_set_header php_value php_admin_value pdftk requirepass masterauth ENV"},
	{stdin, "sudo su gpg gpg2 replicate"},
	{stdin | chpasswd | PassWord, "passwd"},
	{stdin | chpasswd, "chpasswd cryptsetup kinit smbpasswd pdbedit"},
	{verbWord, "update link add pw hash-password"},
	{loginWord, "login auth publish"},
	{settingWord, "config configure"},
	{setWord, "set"},
	{stdinWord, "stdin token fd"},
	{PassWord, prose.Passwords},
	{ProseWord, prose.Others},
	{secretsWord, "secret secrets insert store env"},
	{sql, "identified IDENTIFIED Identified"},
	{impacket, "psexec.py secretsdump.py wmiexec.py smbexec.py smbclient.py atexec.py dcomexec.py mssqlclient.py GetUserSPNs.py GetNPUsers.py " +
		"getTGT.py getST.py lookupsid.py addcomputer.py samrdump.py rpcdump.py reg.py services.py GetADUsers.py findDelegation.py rbcd.py dacledit.py " +
		"changepasswd.py certipy certipy-ad pachine.py printerbug.py GetUsersSPNs.py impacket-getTGT impacket-getST impacket-lookupsid impacket-addcomputer impacket-GetUserSPNs impacket-GetNPUsers impacket-GetADUsers " +
		"impacket-psexec curlftpfs impacket-secretsdump impacket-wmiexec impacket-smbexec impacket-smbclient impacket-mssqlclient mysqlsh " +
		"goldenPac.py rdp_check.py mqtt_check.py sambaPipe.py raiseChild.py netview.py net.py getPac.py wmipersist.py wmiquery.py tstool.py owneredit.py exchanger.py keylistattack.py " +
		"machine_role.py GetLAPSPassword.py Get-GPPPassword.py impacket-goldenPac impacket-raiseChild impacket-rbcd impacket-dacledit impacket-owneredit impacket-changepasswd impacket-net impacket-reg impacket-services"},
}

// WordStarts distinguishes most other words from the names of programs: it is a
// set of hashes of their first runs of letters and digits, and of them as a
// whole. Every text needs it, few need more.
var WordStarts = func() *lex.WordSet {
	var starts lex.WordSet
	add := func(name string) {
		run := 0
		for run < len(name) && lex.Classes[name[run]]&lex.IsAlnum != 0 {
			run++
		}
		starts.Add(name[:run])
		starts.Add(name)
	}
	for _, row := range ProgramNames {
		eachWord(row.Names, add)
	}
	addVerb := func(verb string) {
		if name := verb[:len(verb)-len(":1")]; name != "" {
			add(name)
		}
	}
	for u := range eachUse {
		eachWord(u.names, add)
		eachWord(u.verbs, addVerb)
	}
	return &starts
}()

// eachWord calls f with the words of s. Unlike strings.FieldsSeq it needs no memory, of
// which the start of a program has to pay for all.
func eachWord(s string, f func(string)) {
	for s != "" {
		var word string
		if word, s, _ = strings.Cut(s, " "); word != "" {
			f(word)
		}
	}
}

// programs has the kinds by name, in a table with open addressing, which needs a third
// of the time of a map.
type programs [1 << 11]struct {
	name  string
	kinds Programs
}

// programHash is made for the first text that has a word of WordStarts, which is the
// command that starts the server: a map, sorted, would take ten times as long.
var programHash = sync.OnceValue(func() *programs {
	p := new(programs)
	for _, row := range ProgramNames {
		eachWord(row.Names, func(name string) { p.add(name, row.of) })
	}
	for u := range eachUse {
		var kinds Programs
		eachWord(u.flags, func(flag string) {
			kinds |= flagUse
			if flag[0] == '/' {
				kinds |= usesNow // it is no option elsewhere
			}
		})
		eachWord(u.verbs, func(verb string) {
			if verb = verb[:len(verb)-len(":1")]; verb == "" {
				kinds |= usesNow
				return
			}
			kinds |= verbUse
			p.add(verb, verbWord)
		})
		eachWord(u.names, func(name string) { p.add(name, kinds) })
	}
	eachWord(deviceWords, func(name string) { p.add(name, deviceWord) })
	return p
})

// add adds kinds to those of name.
func (p *programs) add(name string, kinds Programs) {
	at := slotOf(name)
	for p[at].name != "" && p[at].name != name {
		at = (at + 1) % len(p)
	}
	p[at].name = name
	p[at].kinds |= kinds
}

// of returns the kinds of name, or 0.
func (p *programs) of(name []byte) Programs {
	for at := slotOf(name); p[at].name != ""; at = (at + 1) % len(p) {
		if p[at].name == string(name) {
			return p[at].kinds
		}
	}
	return 0
}

// slotOf returns where in programs a name is looked for first.
func slotOf[T string | []byte](name T) int {
	return int(lex.HashWord(name[0], name[1], name[len(name)-1], len(name))) % len(programs{})
}

// programOf returns the kinds of the program of that name.
func programOf(name []byte) Programs {
	if len(name) < 2 || len(name) > maxProgram || !WordStarts.Has(name) {
		return 0
	}
	return programHash().of(name)
}

// WordAt returns the kinds of the program whose name starts at text[i].
func WordAt(text []byte, i int) Programs {
	if i > 0 && text[i-1] == '-' {
		p := programOf(text[i:min(i+len("stdin"), len(text))]) & stdinWord
		if lex.IsCompound(text, i) {
			to := i
			for to < len(text) && to-i <= maxProgram && !lex.IsWordBreak(text[to]) && text[to] != '\\' {
				to++
			}
			q := programOf(text[i:to]) & (PassWord | ProseWord)
			if q&ProseWord != 0 && !prose.MayBeVariable(text, i, to) {
				q &^= ProseWord
			}
			p |= q
		}
		return p
	}
	if i > 0 && text[i-1] != '/' && text[i-1] != '\\' && text[i-1] != '=' && text[i-1] != '+' && text[i-1] != '#' && !lex.IsWordBreak(text[i-1]) {
		if text[i-1] != '_' {
			return 0
		}
		to := i
		for to < len(text) && to-i <= maxProgram && lex.Classes[text[to]]&lex.IsName != 0 {
			to++
		}
		if p := programOf(text[i:to]) & (PassWord | ProseWord); p != 0 && prose.MayBeVariable(text, i, to) {
			return p
		}
		return 0
	}
	to, end := i, min(len(text), i+maxProgram+len(".exe")+1)
	for to < end && lex.Classes[text[to]]&lex.IsAlnum != 0 { // as most of a word is
		to++
	}
	for ; to < end && !lex.IsWordBreak(text[to]) && text[to] != '\\'; to++ {
		if text[to] == '/' {
			return 0 // a directory
		}
	}
	p := programOf(bytes.TrimSuffix(text[i:to], []byte(".exe")))
	if p == 0 && to-i > 1 && text[to-1] == ':' { // "credentials: ann / SECRET"
		to--
		if p = programOf(text[i:to]) & (ProseWord | PassWord); i == 0 || text[i-1] != '/' { // but "user/password: ann / SECRET"
			p &= ProseWord
		}
	} else if p == 0 && to-i > 1 && text[to-1] == '?' { // "Password? SECRET"
		to--
		p = programOf(text[i:to]) & (ProseWord | PassWord)
	} else if p == 0 && to-i > 1 && text[to-1] == '.' { // use SECRET as the password.
		to--
		p = programOf(text[i:to]) & PassWord
	}
	if p&deviceWord != 0 {
		if StartsCommand(text, i, to) {
			p &^= verbWord
		} else {
			p &^= verbUse
		}
	}
	if p&ProseWord != 0 && !prose.Follows(text[to:min(len(text), to+16)]) && (i == 0 || text[i-1] != ' ' || !prose.IsRole(text, i)) {
		p &^= ProseWord
	}
	return p
}

// StartsCommand reports whether the word text[i:to] starts its line, but for a prompt, and no
// option follows.
func StartsCommand(text []byte, i, to int) bool {
	if bytes.HasPrefix(text[to:], []byte(" -")) {
		return false
	}
	for i > 0 && text[i-1] == ' ' {
		i--
	}
	return i == 0 || text[i-1] == '\n' || strings.IndexByte("#>$%:)", text[i-1]) >= 0 || lex.Classes[text[i-1]]&lex.IsQuote != 0
}

// Kinds without a secret unless there is an option, or a word for the program's
// task.
const (
	withOption = webClient | mysql | dashP | ldap | openssl | archive | upperP | snmp | dashA | ftp | htpasswd | kubectl | dashT | ldapPasswd | stdin | sshKeygen | keychain | flagUse
	withLogin  = registry | tokenLogin | Machine
	withVerb   = verbUse | account
)

// Want reports whether a text with programs of these kinds, and an option or
// none, may have a secret among their arguments.
func (p Programs) Want(option bool) bool {
	if option && p&withOption != 0 || p&loginWord != 0 && p&withLogin != 0 || p&settingWord != 0 && p&settings != 0 || p&setWord != 0 && p&settingsSet != 0 {
		return true
	}
	if p&Prints != 0 || p&secretsWord != 0 && p&(secretWord|body) != 0 || p&verbWord != 0 && p&(verbUse|account) != 0 {
		return true
	}
	if p&stdinWord != 0 {
		return p&^notPrograms != 0
	}
	return p&^(withOption|withLogin|withVerb|settings|settingsSet|secretWord|body|basicAuth|notPrograms) != 0
}

// maxProgram is the longest name of a program, in bytes.
const maxProgram = 28
