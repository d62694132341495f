package printed

// table has the programs that print secrets, each line with what must be among their arguments,
// in this order, for it. Bars are between programs and patterns.
//
// "a,b*" is an argument that is one of these; "*" stands for any text. "!a" must not be among
// the arguments, and "?a" is the first one that is no option, and another word. NAME is an
// argument with the name of a secret, FILE the path of a file with one, SQL a statement that
// selects one, CODE an expression that is one, and COMMAND the start of a command that prints
// one. A pattern without parts is met by any arguments.
const table = "" +
	// Stores of passwords.
	`pass gopass passage prs|show !-c* !--clip !--help|otp !-c*|generate !-c*|?show,ls,list,find,search,grep,insert,add,new,edit,rm,remove,delete,mv,rename,cp,copy,git,init,help,version,push,pull,sync,config,otp,generate,recipients,setup,audit,mounts,templates,import,export,env,history,link !-c* !--clip* !--help !--version
op|read|inject !-o !--out-file*|item get --reveal|item get --otp|item get NAME|get totp|signin --raw|document get|connect token create
bw|get password,totp,notes,item|unlock --raw|generate
rbw|get|code|generate
lpass|show !--username !--url|generate
keepassxc-cli|show|generate|diceware|attachment-export
dcli|password|p|note|read
pass-cli protonpass|item|read|view
nordpass enpasscli|show|pass|get
security|find-generic-password,find-internet-password -w,-g,-gw,-wg,-ws,-wa,-wl
secret-tool|lookup
kwallet-query|-r
keyring|get
keyctl|print|pipe
vault bao openbao|kv get !metadata !-field=version|read -field*|read secret/*,kv/*,database/*,aws/*,azure/*,gcp/*,*creds*,cubbyhole/*|print token|token create|unwrap|login -token-only|write -field*|operator init|operator generate-root
hcp|secrets open|secrets read
nomad|var get
consul|kv get NAME|acl token
etcdctl|get NAME
akeyless|get-secret-value
conjur|variable get|variable value
tss|secret
chamber|read|exec COMMAND
credstash|get !list
berglas|access
knox|get
ejson|decrypt
sops|-d,--decrypt,decrypt,exec-env !-i !--in-place !-o !--output*
ansible-vault|view|decrypt --output=-|decrypt -
blackbox_cat blackbox|
git-secret|cat
age rage|-d,--decrypt,-d* !-o !--output*
gpg gpg2|-d,--decrypt,-qd,-dq,-d* !-o !--output* !-dearmor !--default-key|--export-secret-keys
systemd-creds|cat|decrypt
keybase|decrypt|fs read
doppler|secrets get !--only-names|configs tokens create|run COMMAND
infisical|secrets get|token|run COMMAND
dotenv dotenvx|get NAME|get
envchain aws-vault summon teller|COMMAND
snap|get NAME
crudini|--get NAME
debconf-show|NAME
nmcli|-s,--show-secrets,-s*,*psk*
netsh|key=clear
uci nvram fw_printenv getprop mdata-get|NAME|get *.key,*psk*
defaults|read NAME
dconf gsettings|NAME
launchctl|getenv NAME
wg|genkey|genpsk|private-key,preshared-keys
rclone|reveal|obscure
` +
	// Clouds, clusters and services.
	`aws awslocal|secretsmanager get-secret-value,get-random-password,batch-get-secret-value|ssm get-parameter* --with-decryption|ssm get-parameter* NAME|ecr get-login-password,get-authorization-token|ecr-public get-login-password|configure get NAME|sts get-session-token,assume-role*|kms decrypt|rds generate-db-auth-token|codeartifact get-authorization-token|iam create-access-key|eks get-token|redshift get-cluster-credentials|lightsail get-*-password|ec2 get-password-data
gcloud|secrets versions access|print-access-token|print-identity-token|sql generate-login-token|kms decrypt|reset-windows-password
bq|SQL
az|keyvault secret show|get-access-token|credential show|keys list|--expose-token|list-keys|list-publishing-credentials|show-connection-string|keyvault secret download
oci|secrets secret-bundle get*
doctl|connection --format Password|auth token
ibmcloud|iam oauth-tokens|secrets-manager secret
scw|secret version access
yc|iam create-token|lockbox payload get
kubectl oc k microk8s k3s minikube kubectl.exe|get secret,secrets,secret/*,secrets/* *.data*|get secret,secrets,secret/*,secrets/* *index*data*|view-secret,view_secret|create token|whoami -t,--show-token|exec,run,debug,rsh COMMAND|kubectl COMMAND|token create
oc|extract secret,secrets,secret/*,secrets/* --to=-|extract secret,secrets,secret/*,secrets/* --to -
kubeadm|token create,generate|certificate-key
docker podman nerdctl lxc incus kubectl|exec,run,shell COMMAND|join-token -q,--quiet|config inspect NAME
docker-compose podman-compose|exec,run COMMAND
argocd|initial-password|generate-token
terraform tofu terragrunt|output NAME|output -raw,-json NAME|console NAME
pulumi|config get NAME|stack output NAME|--show-secrets
heroku|config:get NAME|auth:token|config:get *_URL,*_URI,*_DSN|run COMMAND
fly flyctl|auth token|tokens create|console COMMAND
netlify|env:get NAME
vercel railway|NAME
gh|auth token
glab|config get NAME|auth token
git|config NAME|secret cat
npm pnpm yarn|config get NAME|token create
pip pip3 snyk|get NAME
gitlab-rails rails|runner CODE|secret|credentials:show
rake|secret
mix|phx.gen.secret
artisan php|key:generate --show
wp|config get NAME
ykman|code|oath
oathtool 2fa totp-cli|
tmux|show-environment NAME
` +
	// Makers of passwords.
	`openssl|rand !-out|-decrypt !-out|enc -d !-out|pkeyutl,rsautl -decrypt !-out
pwgen apg makepasswd xkcdpass diceware pwqgen gpw genpass|
` +
	// Databases.
	`mysql mariadb psql sqlite3 sqlite cockroach clickhouse-client clickhouse duckdb sqlcmd cqlsh mycli pgcli usql trino presto snowsql osqueryi|SQL
redis-cli valkey-cli keydb-cli get GET hget HGET mget MGET getex GETEX hgetall HGETALL hvals HVALS lrange LRANGE smembers SMEMBERS|NAME
` +
	// Interpreters, and what reads files and variables.
	`python python3 python2 ruby node nodejs perl php deno bun pwsh powershell lua R julia|CODE|FILE CODE
printenv|NAME
jq yq dasel xq gojq xmllint xmlstarlet tomlq hclq|NAME !*del(* !*has(* !*length* !*keys*
awk gawk mawk|NAME|FILE
sed gsed|-n* NAME !-i*|-nE NAME|-rn NAME|FILE !-i*
cat less more bat batcat head tail tac nl strings xxd od hexdump Get-Content gc base64 base32 view rev sort cut tr fold paste fmt column zcat gzcat hexyl|FILE
grep egrep rg|-o*,-Po,-oP,-hoP NAME
type|!pass !passwd !gopass FILE
curl wget http https xh|*latest/api/token*|*metadata*token*|*/v1/secret/*|*/v1/kv/*raw*
Get-Secret Get-AzKeyVaultSecret ConvertFrom-SecureString Get-SecretInfo|-AsPlainText
Unprotect-CmsMessage|
`

// statements are commands that a program other than a shell reads: of Redis.
const statements = "get GET hget HGET mget MGET getex GETEX hgetall HGETALL hvals HVALS lrange LRANGE smembers SMEMBERS"

// wrappers are programs that run a command which is among their arguments.
const wrappers = "sudo doas env time command exec nohup builtin noglob watch xargs nice ionice timeout stdbuf unbuffer setsid chroot nsenter unshare ssh mosh sshpass bash sh zsh dash ash ksh fish " +
	"su runuser eval busybox systemd-run poetry pipenv bundle npx uv vagrant wsl flatpak toolbox distrobox proxychains torsocks firejail script tmux screen direnv nix-shell nix devbox mise asdf rtx faketime strace ltrace parallel caffeinate winpty gosu setpriv catchsegv ts kubectx if while until then do else cmd"

// echoes are programs that print what they are given.
const echoes = "echo printf print Write-Output Write-Host write-host write-output puts say"

// filters are programs that print what they read, or a part of it.
const filters = "base64 base32 base58 basenc uudecode tr cut awk gawk mawk sed gsed head tail jq yq gojq dasel xq grep egrep rg cat tac rev tee sort uniq xxd od hexdump fold less more bat batcat " +
	"column paste nl fmt strings perl ruby python python3 node gunzip zcat gzip iconv dos2unix expand unexpand openssl xmllint tomlq hclq gron Out-String Select-String ConvertFrom-Json " +
	"Select-Object select ForEach-Object foreach lolcat figlet qrencode sponge moreutils xargs"
