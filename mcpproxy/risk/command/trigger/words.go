package trigger

// triggerWords are the words, in lower case, of which every text that a rule can
// see has at least one, unless it has syntax that can build one.
const triggerWords = `
rm grm srm rmdir grmdir unlink gunlink shred gshred wipe scrub trash rmtrash rimraf del rip truncate gtruncate fallocate dd gdd dcfldd dc3dd
ddrescue tee sponge delete tar gtar bsdtar zip 7z 7za rsync scp rclone unison gsutil s3cmd s5cmd logrotate journalctl vacuum history fc gio
kioclient push reset clean checkout restore switch stash branch tag reflog gc filter prune update worktree submodule bisect rebase notes lfs
symbolic config replace fast credential drop dropdb dropuser psql mysql mariadb sqlite3 sqlite duckdb clickhouse sqlcmd cqlsh usql pgcli
mycli litecli cockroach snowsql isql sqlplus beeline hive presto trino bq impala mongo mongosh redis valkey influx mysqladmin pg_dropcluster
pg_resetwal dropcluster alter mkfs mke2fs mkswap newfs newfs_hfs newfs_msdos mkdosfs mkntfs mkudffs mkreiserfs wipefs fdisk sfdisk gdisk
nodetool ghc runghc kotlinc ecl cfdisk cgdisk sgdisk parted blkdiscard badblocks hdparm nvme mdadm cryptsetup lvremove vgremove pvremove pvcreate lvreduce zpool zfs btrfs
diskutil flashrom blkzone sg_format tune2fs nwipe e2image partx dmsetup losetup asr bioctl flash_erase flash_eraseall mtd chmod gchmod chown
chgrp gchown setfacl umask xhost icacls kill gkill pkill killall skill killall5 fuser xkill pidwait taskkill shutdown reboot halt poweroff
init telinit systemctl initctl loginctl pm2 supervisorctl sv monit zellij abduco launchctl rundll32 kexec logoff iptables ip6tables nft ufw
firewall userdel deluser groupdel delgroup usermod passwd swapoff pacman rpm dpkg auditctl setenforce rmmod chpasswd umount curl wget wget2
aria2c axel lwp lynx w3m xh httpie iwr invoke nc ncat netcat socat telnet sftp ftp tftp lftp smbclient ncftpput ssh security secret gopass
bw mailx mutt sendmail terraform tofu terragrunt opentofu cdktf pulumi cdk sam serverless sls eksctl kops kind k3d minikube vercel netlify
firebase wrangler doctl linode hcloud scw ibmcloud oci railway render supabase amplify eb copilot civo vultr gcloud az consul etcdctl vault
nomad argocd flux istioctl rancher velero vagrant virsh vboxmanage multipass fly flyctl heroku aliyun tccli openstack ec2 packer ansible
kafka rabbitmqctl nix helm helmfile helm3 aws prisma knex sequelize alembic flyway liquibase artisan typeorm drizzle goose migrate dbmate
atlas microk8s kubecolor podman nerdctl hg svn jj bfg sudo doas nohup setsid builtin chronic ifne fakeroot eatmydata unbuffer catchsegv
torsocks torify tsocks dbus setpriv busybox toybox rtk linux32 linux64 pipx noglob nocorrect winpty fakechroot daemonize detach disown
ccache distcc exec_always nice ionice timeout gtimeout gtime stdbuf gstdbuf chroot unshare nsenter pkexec strace ltrace taskset chrt numactl
prlimit choom firejail perf valgrind heaptrack proot proxychains proxychains4 rlwrap cpulimit xvfb caffeinate systemd faketime sshpass plink mosh
npx bunx uvx pnpx direnv poetry pipenv uv hatch rye pdm doppler infisical bundle mise rbenv pyenv nodenv devbox chamber adb lxc incus wsl
dotenv dotenvx toolbox distrobox env genv autossh dbclient su runuser screen script flock entr expect sg newgrp capsh machinectl batch
crontab sh bash dash zsh ksh ksh93 mksh ash fish rbash yash tcsh csh pdksh posh bosh oksh eval source command trap alias xargs gxargs
parallel rush hyperfine mispipe concurrently export declare mapfile readarray python python2 python3 pypy pypy3 ipython ipython3 perl ruby irb jruby node
nodejs deno bun php lua luajit osascript rscript pwsh powershell tclsh groovy julia elixir cmd vim nvim emacs gvim rake rails remove ri
erase rd clear deltree format initialize stop restart iex vssadmin wbadmin bcdedit diskpart cipher reg schtasks sdelete sdelete64 fsutil sed
gsed id_rsa id_dsa id_ecdsa id_ed25519 shadow gshadow sudoers credentials netrc _netrc pgpass cnf pypirc htpasswd environ keychain secrets
gnupg kube tfrc token application_default_credentials key3 key4 logins wallet keytab ssh_host_rsa_key accesstokens dlx rmtree ext4
prompt_command cp mv gcp gmv install suspend hibernate 777 0777 666 0666 1777 bashrc bash_profile bash_login bash_logout bash_aliases profile zshrc zprofile zshenv zlogin zlogout kshrc mkshrc
cshrc tcshrc xinitrc xsession xprofile authorized_keys authorized_keys2 gitconfig vimrc inputrc pam_environment forward sitecustomize
pythonrc etc hooks autostart launchagents launchdaemons conf zdotdir unpublish yank rmi down leave drain evict force replicas terminate
deregister revoke purge destroy schedule rb autoremove autopurge uninstall undefine archive system getline killp killw respawn respawnp
respawnw s_client flush irm killses edit compress stuff quit move kerberos proc dump emergency pre commit_msg tasks rc login_keychain
keys bwrap robocopy netsh wmic msiexec mshta regsvr32 dism spps mppreference unregister disable gosu chpst setuidgid tini catatonit restic borg borgbackup kopia tsx raku kotlin scala clojure clj racket guile sbcl crystal jshell conda mamba micromamba winget choco pkgin opkg emerge exim exim4 postsuper mrm
run0 cgexec setarch lockf sem pdsh clush dsh pssh hdfs hadoop dscl atrm wevtutil dmesg tmutil timeshift duplicity certbot fastboot xcrun xfs_repair debugfs
ln k0s k3s kubeadm qm pct rpk rabbitmqadmin nats snapper gluster rbd ceph salt zkcli pfctl ipset pg_restore mongorestore dotnet diesel sqlx
certutil bitsadmin takeown mountvol useradd adduser gpasswd setcap localuser localgroupmember adgroupmember binarypathname binpath scheduledtask itemproperty scheduledjob loginhook logouthook
fsmonitor hasura symfony doctrine ecto drush keydb spark fossil p4 annex ruby2 ruby3 lua5 perl5 php7 php8 spawn gist pr mail wp manage fkill mix console auditproxy auditcollector mcp chattr mount pgrep pidof
docker kubectl insmod modprobe sysctl chisel wstunnel ngrok pgrok frpc rathole ligolo revsocks gsocket tmate ttyd gotty localtunnel pwncat iodine dnscat dnscat2 ptunnel rpivot sshx bore
zrok upterm devtunnel tunnel tailscale funnel gost portproxy plink slogin dbclient teardown complain csrutil spctl falconctl mdatp sentinelctl osqueryctl santactl auditpol fltmc sslverify cloudtrail
mimikatz pypykatz lazagne unshadow john hashcat hydra medusa patator kerbrute rubeus responder secretsdump getnpusers getuserspns ntlmrelayx crackmapexec cme netexec nxc sharphound bloodhound mimipenguin
procdump procdump64 dumpert nanodump collaborators memberships invitations members deploy postinstall preinstall prepare pkg croc wormhole histfile histsize histfilesize savehist histignore
crictl scc clusterrolebinding rolebinding clusterrole grubby netfirewallprofile xp_cmdshell printenv xdotool ydotool wtype grant superuser modules workflows jenkinsfile npmrc
rmsync rmdirsync unlinksync execsync spawnsync child_process keyrings cookies firefox chrome chromium bravesoftware mem
kextload kmutil kldload sysadminctl dsenableroot dseditgroup pw ditto keychains ztcp socket quarantine xattr trust getent audit syslog loginwindow publish upload variable protection rulesets protected_branches anchors proxy shrc usercustomize pth startupitems emond
logging certificates binarycookies ufw inprocserver32 localserver32 clsid esentutl ntdsutil vaultcmd psexec psexec64 paexec psreadlineoption mpcmdrun removedefinitions unblock sysmon sysmon64 cpassword ntds adreplaccount gpppassword gsecdump webbrowserpassview scale scaling resize capacity
openrowset opendatasource dblink dblink_connect dblink_connect_u dblink_exec dblink_send_query file_fdw read_text read_blob readfile writefile pg_ls_dir pg_stat_file fts3_tokenizer utl_file utl_inaddr httpuritype dbms_ldap xp_regread xp_instance_regread xp_servicecontrol xp_regdeletevalue xp_regdeletekey trustworthy setuser unload allow_unsigned_extensions cypher slaveof replicaof
program outfile dumpfile infile soname lo_export lo_import load_file pg_read_file pg_read_binary_file load_extension sys_eval sys_exec attach backup load noaudit plsh plpythonu plpython2u plpython3u plperlu pltclu unsafe external_access language
sp_oacreate xp_regwrite sp_configure sp_addsrvrolemember sp_procoption sp_add_jobstep sp_execute_external_script sp_executesql xp_dirtree xp_fileexist xp_subdirs pg_terminate_backend create_job create_program
pg_authid pg_shadow sql_logins syslogins dba_users global_priv authentication_string password_hash utl_http utl_tcp utl_smtp general_log slow_query_log log_output audit_log_policy server_audit_logging identified login
cmstp installutil ieexec hh presentationhost msxsl certoc xwizard imewdbld configsecuritypolicy desktopimgdownldr msoxmled ngen pubprn devinit squirrel syncappvpublishingserver forfiles pcalua conhost scriptrunner
rdrleakdiag tttracer adplus createdump dumpminitool sqldumper dsdbutil winrm mavinject dnscmd certreq datasvcutil gcore kmem kcore bash_history zsh_history ash_history sh_history ksh_history histfile fish_history consolehost_history mysql_history mariadb_history psql_history rediscli_history sources sshcommand plink
gettgt getst ticketer gettgtpkinit getnthash lsassy targetedkerberoast certipy petitpotam dementor printerbug mitm6 safetykatz sharpdump snaffler winpeas linpeas pywhisker donpapi masky dploot
rados emacsclient nvram bind bindkey stty cmake busctl ipmitool sst fdesetup efibootmgr scsi_format sg_sanitize tarsnap obliterate undeploy unsubscribe
addcomputer rbcd dacledit owneredit bloodyad moz_cookies moz_logins systemsetup globalstate lsquarantine gkautorearm smbguestaccess afpguestaccess
`

// firstWords are words that are too common in prose to be trigger words: they
// are ones only in the first word of a command.
const firstWords = `
at http https net net1 mail pass op npm pnpm yarn lt tmux
`

// weakWords are the trigger words that are also common in prose. A text that does
// not parse is not Opaque for one of them.
const weakWords = `
keys time which type set read less more most start watch make just view at ip table service exec source history install sort script batch screen op k b2
branch tag filter update notes config replace fast clone go help link login master cache hosts store token secret secrets pass
mail fetch http https environment wait local export command function alias trap run env init nice lima arch ts perf orb render
railway eb copilot goose atlas flux argocd nomad vault consul packer sam make monit security detach just bun hub scope node php python ruby perl
ssh curl docker go npm yarn cargo gem pip credentials keychain wallet symbolic commit expire read remove stop restart format cipher reg
manage mix console pr spawn gist salt spark annex grant modules workflows kubectl tunnel funnel bore teardown complain responder hydra medusa john members deploy prepare pkg invitations collaborators wormhole iodine code
tmux sysctl modprobe ngrok tailscale printenv superuser rolebinding clusterrole clusterrolebinding memberships jenkinsfile npmrc postinstall preinstall cloudtrail tmate ttyd chisel croc bloodhound
xdotool gost scc cme histfile histsize sslverify
program attach backup load unsafe language identified login password_hash infile outfile
sources auditproxy auditcollector mcp cookies firefox chrome chromium mem scale scaling resize capacity publish upload variable protection trust proxy socket logging certificates anchors disable unregister cp mv ln tee find table mount ls up down in out on off and or not is be do if then else fi done for while case clean base64 sh bash invoke
`
