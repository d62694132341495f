package argv

import (
	"bytes"
	"strings"
	"sync"
)

// A use is how programs accept secrets that need no kind of their own.
type use struct {
	names string
	// flags are options that want a secret as the next word: "-w". With "*" it
	// may also be attached, and with ":" it only is. With "=" the next word is
	// KEY=SECRET, and with "%" NAME%SECRET. With "@" it is the name of a variable
	// and the one after it a secret if the name is sensitive, with "#" the one after
	// the next is the secret, with "^" also the one behind that, and with "~"
	// the next word is none. With "!" the next word is one if an option with "@" has
	// named it. With "+" the next word is NAME:SECRET.
	flags string
	// verbs are words with the number of the argument behind them that is the
	// secret: "unlock:1". ":1" counts from the program, ":0" is standard input. In
	// "add%1" it is behind a colon in that argument.
	verbs string
}

// uses has a line for each, with bars between names, flags and verbs.
const uses = "" +
	// Databases and message brokers.
	`beeline sqlline cypher-shell cbq couchbase-cli hdbsql isql-fb|-p*|
hdbuserstore||SET:4 Set:4 set:4
emqx emqx_ctl||add:2
net||password:2
lftp ncftp||user:2
vsql|-w*|
gbak gfix gsec|-pas -password|
influx|-t|
db2||using:1 new:1 confirm:1
isql iusql isql-v||:3
neo4j-admin||set-initial-password:1
mosquitto_passwd||:3
mqttx|-P*|
stomp|-W|
mysqladmin||password:1
sp_addlogin||:2
sp_password||:1 :2
sp_addlinkedsrvlogin||:5
deluge-console||connect:3
zkCli.sh zkcli zookeeper-shell.sh zookeeper-shell addauth||digest:1 addauth:2
` +
	// Vaults.
	`vault bao|-id -accessor~ -address~ -namespace~ -method~ -format~ -field~|login:1 unseal:1 unwrap:1 renew:1 revoke:1 lookup:1
bw|--session|login:2 unlock:1
rclone||obscure:1 obscure:0
doppler||set:2
dotenvx sst||set:2
keyctl||add:3 update:2
ykman|-P* -n|add:2 static:1
yubico-piv-tool tpm2_unseal tpm2_create|-P* -p*|
oathtool|-b --base32|:1
komac|-t|
dexter twurl|-s|
flask-unsign|-S|
choco|-k|
zpaq|-k*|
tgpt|--key|
travis||encrypt:1
zfs zpool||load-key:0 create:0
geli bioctl tomb encfs cryfs expressvpn telegram-send||:0
wg||pubkey:0
restic|-p<|key:0
aws|--plaintext|
kopia unar lsar msoffcrypto-tool vncdo vncdotool vncconnect rpk caprover zabbix_js ipmi-config bmc-config elasticsearch-users instaloader olevba pkcs11-tool pkcs15-tool ffsend fs_cli yadm|-p|
tpm2_nvread tpm2_nvwrite tpm2_nvdefine tpm2_load tpm2_import tpm2_sign tpm2_createprimary tpm2_evictcontrol tpm2_activatecredential tpm2_clear|-P* -p*|
iwctl check_ldap monetdb kdb5_util|-P|
conjur|-v|
dig kdig nsupdate knsupdate|-y+|
trapsink trap2sink informsink||:2
dislocker dislocker-fuse|-u* -p*|
gnome-keyring-daemon newusers||:0
credstash||put:2
berglas||create:2
chamber||write:3
virsh|--base64|secret-set-value:2 set-user-password:3
lpass||login:0
git-crypt||unlock:0
kubeseal aespipe vncpasswd grub-mkpasswd-pbkdf2 argon2 saslpasswd2 htdigest||:0
anydesk openconnect adcli hdiutil su keepassxc-cli createuser ssh-add||:0
elasticsearch-reset-password systemd-ask-password||:0
elasticsearch-keystore logstash-keystore kibana-keystore||add:0
systemd-creds||encrypt:0
op||signin:0
terraform tofu jf heroku npm pnpm||login:0 adduser:0
doveadm||test:2 login:2
consul||set-agent-token:2
realm||join:0
idevicebackup2||on:1 off:1
hsw-cli||unlock:1
ipa||user-add:0 user-mod:0 passwd:0
llm|--value|keys:0
databricks|--string-value --bytes-value|configure:0
swarm||unlock:0
` +
	// Clouds and builds.
	`etcdctl||add%1
prefect|-k|
p4|-P*|login:0
knife|-P*|
chef-server-ctl||user-create:5
az|--key-value --secure-environment-variables=|devops:0
drone|--data|
pulumi|--secret#|
cf||auth:2 create-user:2
gcloud||activate-refresh-token:2
anaconda vagrant|-t|
php symfony||security:hash-password:1
mc mcli||set:4 host:5 user:4
vercel|-t|secrets:3
fly||import:0
rancher|-t|
kwallet-query||:0
flyctl|-t|import:0
supabase|-p*|
stripe|--set@|
user-secrets||set:2
circleci||store-secret:0
keyring||set:0
hcloud||create:0
gitlab-runner|-r|
transmission-remote|-n --auth|
b2||authorize-account:2 authorize:2
cloudflared||install:1
zrok||enable:1
expose||token:1
cargo|--registry~|login:1
wandb snyk||login:1 auth:1
nuget||setApiKey:1 setapikey:1 push:2
ansible-vault|--name~ -n~ --stdin-name~ --vault-id~ --vault-password-file~ --encrypt-vault-id~ --output~|encrypt_string:1 encrypt_string:0
glab|-v --value|
slackcat|-t|
hatch|-a|
gem|--key|
twilio||login:2
cscli|-k|
mix|--key|
cypress|--key -k|
kaggle|-v|
mvn|-emp -ep|
vsce ovsx cabal cpan-upload|-p*|
altool|-p|
drush||upwd:2 user:password:2 user-password:2
grafana-cli grafana||reset-admin-password:1
samba-tool||create:2 add:2
` +
	// Cryptography and archives.
	`openssl|-psk -pass< -passin< -passout<|
keytool|-new|
signtool|/p|
certutil certreq|-p|
djoin|/p|
sshpass|-f<|
cryptsetup|-d< --key-file<|
pk12util|-W -K|
gpg-preset-passphrase|-P|
ccrypt ccencrypt ccdecrypt|-K --key|
mcrypt mdecrypt|-k|
admintools aescrypt mutool veracrypt truecrypt fcrackzip stegsnow mupdf|-p|
cryptcat ss-local ss-server ss-redir sslocal ssserver|-k|
pdftotext pdftoppm pdfimages pdfinfo pdftocairo|-upw -opw|
croc|--code|
bitcoin-cli litecoin-cli dogecoin-cli dash-cli elements-cli||walletpassphrase:1 encryptwallet:1 importprivkey:1 walletpassphrasechange:1 walletpassphrasechange:2
weevely||generate:1
slappasswd|-s|
security|-k|
` +
	// Directories, networks and machines.
	`kadmin kadmin.local ktutil|-w -pw|
ipa-server-install ipa-client-install ipa-replica-install|-p -a -w|
bloodhound-python enum4linux racadm openfortivpn snx certipy|-p|
swift|-K|
winrs winrm|-p: /p: -H|
wevtutil|/p:|
rasdial||:3
pro ua||attach:1
SUSEConnect|-r|
credhub|-w -v|
ipmitool||password:1 password:2
iwconfig iw||key:1
wbinfo|-a% --authenticate%|
smbget smbcacls smbcquotas sharesec smbtree winexe wmic nmblookup pth-winexe|-U% --user%|
radtest||:2 :4 :5
radclient||:3
xfreerdp xfreerdp3 wfreerdp wlfreerdp sdl-freerdp freerdp sqlpackage|/p: /gp: /tp: /sp:|
schtasks SCHTASKS|/p /rp|
eventcreate driverquery setx tasklist taskkill systeminfo getmac gpresult openfiles bootcfg|/p|
logman|-u#|
ttyd gotty|-c+ --credential+|
reg|/v@ /d!|
dscl|-passwd^|
networksetup|-setairportnetwork~|:2
sendemail sendEmail|-xp|
swaks|-au~ -ap|
irssi|-w|
yt-dlp youtube-dl gallery-dl megaput megaget megals megadl|-p*|
mega-login||:2
steam steamcmd steamcmd.sh|-login#|login:2
arj|-g*|
zerotier-cli|-T*|
vmrun|-gp -hp -vp|
check_snmp|-C*|
check_mysql check_pgsql check_mysql_query check_oracle|-p|
onesixtyone||:2
salt-call||shadow.set_password:2
mullvad||login:1
mcrcon rcon rcon-cli gorcon ARRCON arrcon|-p* -P*|
prosodyctl ejabberdctl||register:3 change_password:3 passwd:2 adduser:2
Rubeus Rubeus.exe rubeus.exe|/rc4: /aes128: /aes256: /des: /password: /credpassword: /ticket:|
urbackupclientctl|-k@ -v!|
xmlstarlet|-u@ -v!|
plutil|-replace@ -insert@ -string! -data!|
kwriteconfig5 kwriteconfig6|--key@|
wpa_cli||psk:1 password:1 new_password:1 sae_password:1 passphrase:1 psk_passphrase:1 wep_key0:1 private_key_passwd:1 pin:1
create_ap||:4
airdecap-ng openttd chpass|-p|
sic|-k|
crackmapexec netexec nxc cme evil-winrm|-H|
kerbrute|-d~ -t~ -o~|passwordspray:2
nikto|-id|
lwp-request|-C|
netdom|/pd: /po: /passwordd: /passwordo:|
conan oras|-p|
ibmcloud|--arbitrary-payload --password-payload|
frpc|-t|
pihole sfdx|-p|
salt salt-call||shadow.set_password:2
ldapadd ldapsearch ldapmodify ldapdelete|-y<|
jq yq|--arg@ --argjson@|
` +
	// The configuration of routers.
	`enable||secret:1 password:1 sha256:1 sha512:1 level:2
username||secret:1 password:1 sha256:1 sha512:1
set||password:1 passwd:1 passphrase:1 psksecret:1 secret:1 user-secret:1 private-key:1 plaintext-password:1 preshared-key:1
ip aaa-server peer||password:1 key:1
standby glbp||authentication:1 text:1
authentication||key:1
neighbor||password:1
snmp||community:1
snmp-server||community:1 2c:1 md5:1 sha:1 des:1 3des:1 aes:2
ntp ntp-service||md5:1 cipher:1 simple:1 value:1
ppp||password:1
wpa-psk||:1 ascii:1 hex:1
ipsec-psk||:1
pre-shared-key||:1 address:3 hostname:3 key:1 ascii-text:1 hexadecimal:1 local:1 remote:1
tacacs-server radius-server||key:1 secret:1 cipher:1 simple:1
server-private isakmp||key:1
bgp ospf isis||authentication-key:1 md5:1 key:1 password:1
message-digest-key||md5:1
rocommunity rwcommunity rocommunity6 rwcommunity6 trapcommunity||:1
com2sec com2sec6||:3
createUser||:3 :5
stats||auth:1
local-user super shared-key||cipher:1 irreversible-cipher:1 simple:1 md5:1
authentication-key authentication-mode||cipher:1 irreversible-cipher:1 simple:1 plain:1 md5:1 value:1
snmp-agent||read:1 write:1 cipher:1
pac||key:1
auth-port acct-port||key:1
vrrp||text:1
psk||pass-phrase:1
mgt-config||password:1
wireless-key wireless-key1 wireless-psk snmp-community-string||:1
key-string plain-text-password plain-text-password-value wpa-passphrase pre-shared-secret ascii-text insecure-password||:1
chap-secret cachemgr_passwd||:1
password_pbkdf2||:2
webcontrol_authentication stream_authentication||%1
rootpw bindpw AuthLDAPBindPassword|--plaintext --iscrypted|:1
Xauth IPSec||password:1 secret:1
IDENTIFY||:1
NickServ nickserv||:2 :3
oper OPER||:2
teamviewer||passwd:1
` +
	// What clients say to servers, and the configuration of Redis.
	`AUTH AUTHENTICATE||:1 :2
HELLO||AUTH:2
MIGRATE||AUTH:1 AUTH2:2
LOGIN||:2
auth-pass||:2
sentinel-pass||:1
`

// eachUse yields the uses in order.
func eachUse(yield func(use) bool) {
	for line := range strings.Lines(uses) {
		var u use
		u.names, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		u.flags, u.verbs, _ = strings.Cut(line, "|")
		if !yield(u) {
			return
		}
	}
}

// plainWords are names of programs that prose has too: they start their line,
// and a secret behind them ends it or looks like one.
const plainWords = "pro ua pac stats realm Xauth IPSec oper OPER IDENTIFY AUTH AUTHENTICATE HELLO LOGIN NickServ nickserv " + deviceWords

// deviceWords are those of which sentences speak with a word for a secret: what is behind
// that is none if a sentence about one has it, "set password policy".
const deviceWords = "enable username peer neighbor set ip aaa-server standby glbp authentication"

// The marks of flags.
const (
	flagNext      = 0
	flagAttached  = '*'
	flagInside    = ':'
	flagPair      = '='
	flagVariable  = '@'
	flagSecond    = '#'
	flagSecondOn  = '^'
	flagOther     = '~'
	flagDescribed = '!'
	flagPercent   = '%'
	flagColon     = '+'
	flagFile      = '<'
)

// A rule is a use as it is read.
type rule struct {
	flags []flagRule
	verbs []verbRule
	plain bool
	told  bool // a sentence may begin so: see deviceWords
}

type flagRule struct {
	name string
	mark byte
}

type verbRule struct {
	name      string
	arguments uint16 // a set of numbers, with 0 for standard input, and behindColon
}

// behindColon is in a set of arguments that have USER:SECRET.
const behindColon = 1 << 15

// rules has the uses by program. They are read for the first text that has one.
var rules = sync.OnceValue(func() map[string]*rule {
	table := make(map[string]*rule)
	for u := range eachUse {
		r := new(rule)
		for flag := range strings.FieldsSeq(u.flags) {
			mark := flag[len(flag)-1]
			if strings.IndexByte("*:=@#^~!%<+", mark) < 0 {
				r.flags = append(r.flags, flagRule{flag, flagNext})
				continue
			}
			r.flags = append(r.flags, flagRule{flag[:len(flag)-1], mark})
		}
		for verb := range strings.FieldsSeq(u.verbs) {
			n := len(verb) - len(":1")
			v := verbRule{verb[:n], 1 << (verb[n+1] - '0')}
			if verb[n] == '%' {
				v.arguments |= behindColon
			}
			r.verbs = append(r.verbs, v)
		}
		for name := range strings.FieldsSeq(u.names) {
			table[name] = r
		}
	}
	for name := range strings.FieldsSeq(plainWords) {
		if r := table[name]; r != nil {
			r.plain = true
		}
	}
	for name := range strings.FieldsSeq(deviceWords) {
		table[name].told = true
	}
	return table
})

// flag returns the mark of w, an option, and where in it a secret starts that is
// attached.
func (r *rule) flag(w []byte) (mark byte, at int, ok bool) {
	for i := range r.flags {
		f := &r.flags[i]
		n := len(f.name)
		switch {
		case !bytes.HasPrefix(w, []byte(f.name)) && (f.name[0] != '/' || len(w) < n || !bytes.EqualFold(w[:n], []byte(f.name))): // Windows has them in any case
		case len(w) == n:
			return f.mark, 0, f.mark != flagInside
		case f.mark == flagInside && w[n] == ':', n > 2 && w[n] == '=':
			return f.mark, n + 1, true
		case (f.mark == flagAttached || f.mark == flagFile || f.mark == flagPercent) && n == 2:
			return f.mark, n, true
		}
	}
	return 0, 0, false
}

// verb returns the numbers of the arguments behind w that are secrets. The verb
// "" is the program itself.
func (r *rule) verb(w []byte) (arguments uint16) {
	for i := range r.verbs {
		if string(w) == r.verbs[i].name {
			arguments |= r.verbs[i].arguments
		}
	}
	return arguments
}
