package risk

import (
	"path"
	"strconv"
	"strings"
)

// judgeCommand applies the rule of one command by its name and returns what it prints.
func (s *shell) judgeCommand(name string, f []field, in stream) stream {
	if w, ok := wrapperOf(name); ok {
		out := s.wrapped(w, f, in)
		if w.verb != "" && isGenerator(name, f[1:]) {
			out.from |= generated
		}
		return out
	}
	args := f[1:]
	out := stream{kind: unknownStream, from: in.from}
	switch name {
	case ":", "true", "false", "wait":
		return stream{kind: emptyStream}
	case "echo":
		return echo(args)
	case "printf":
		return s.printf(args)
	case "cat", "bat", "batcat", "head", "tail", "less", "more", "tac", "nl", "strings", "od", "hexdump", "xxd", "grep", "egrep", "fgrep",
		"rg", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "cut", "sort", "uniq", "tr", "rev", "base64", "base32", "basenc", "openssl", "gpg", "gpg2",
		"gunzip", "zcat", "gzip", "xzcat", "xz", "bzcat", "bzip2", "zstdcat", "zstd", "lz4", "uudecode", "iconv", "envsubst", "jq", "yq", "fold",
		"paste", "column", "pr", "expand", "unexpand", "dos2unix", "ccrypt", "age", "b64decode", "ag", "ack":
		return s.filter(name, args, in)
	case "which", "command", "type":
		return s.lookUp(name, args, in)
	case "pwd":
		return textOf(".")
	case "tee", "sponge":
		p := parseFlags(args, "", "output-error")
		for _, a := range p.args {
			if a.reads == nil || !strings.HasPrefix(a.s, "/dev/fd/") {
				s.write(a, in, !p.has("a", "append"))
			}
		}
		return in

	case "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "fish", "rbash", "yash", "tcsh", "csh", "pdksh", "posh", "bosh", "oksh":
		return s.runShell(f, in)
	case "eval":
		text := joinFields(args)
		var from Detectors
		for _, a := range args {
			from |= a.from
		}
		whole := field{s: text, from: from}
		if len(args) == 1 {
			whole = args[0]
		}
		return s.runField(whole, in)
	case "source", ".":
		if len(args) > 0 {
			s.runFile(args[0], args[1:], in, "")
		}
		return out
	case "trap":
		if len(args) > 1 {
			s.runField(args[0], stream{})
		}
	case "alias":
		for _, a := range args {
			if name, text, ok := strings.Cut(a.code(), "="); ok {
				if s.aliases == nil {
					s.aliases = map[string]string{}
				}
				s.aliases[name] = text
				s.maybeRun(text)
			}
		}
		return stream{kind: emptyStream}
	case "set":
		s.setParams(args)
		return stream{kind: emptyStream}
	case "shift":
		if s.hasParams && len(s.params) > 0 && len(args) == 0 {
			s.params = s.params[1:]
		} else {
			s.params, s.hasParams = nil, false
		}
	case "read", "mapfile", "readarray":
		s.read(name, args, in)
	case "unset":
		for _, a := range args {
			delete(s.vars, a.s)
		}
	case "export", "declare", "typeset", "local", "readonly":
		for _, a := range args {
			if name, value, ok := strings.Cut(a.s, "="); ok {
				s.set(name, shellVar{values: []string{value}, known: !a.unknown, from: a.from}, false)
				s.assigned(name, a.code()[strings.IndexByte(a.code(), '=')+1:])
			}
		}
		return stream{kind: emptyStream}
	case "xargs", "gxargs":
		return s.runXargs(f, in)
	case "parallel", "rush":
		return s.runParallel(f, in)
	case "find", "gfind", "fd", "fdfind":
		s.find(args, in)
	case "hyperfine", "mispipe":
		for _, a := range args {
			if !strings.HasPrefix(a.s, "-") {
				s.runField(a, stream{})
			}
		}
	case "curl", "wget", "wget2", "iwr", "irm", "http", "https", "xh", "httpie", "aria2c", "lynx", "w3m", "fetch", "lwp-request", "Invoke-WebRequest":
		s.judgeTool(name, args, in)
		out.from |= RemoteExec
	default:
		if s.judgeTool(name, args, in); isGenerator(name, args) {
			out.from |= generated
		}
	}
	return out
}

// isGenerator reports whether a command is of those that print start-up code for
// a shell. Running it is as usual as running the program itself.
func isGenerator(name string, args []field) bool {
	switch name {
	case "ssh-agent", "dircolors", "direnv", "pyenv", "rbenv", "nodenv", "starship", "zoxide", "fnm", "mise", "opam", "thefuck", "keychain", "lesspipe", "register-python-argcomplete", "resize", "tput":
		return true
	case "brew", "conda", "mamba", "micromamba", "minikube", "docker-machine", "atuin", "mcfly", "fzf", "luarocks", "kubectl", "helm", "gh", "rustup", "poetry", "pip", "npm", "deno", "op", "tmux", "aws_completer":
		for _, a := range args {
			if oneOf(a.s, "shellenv", "shell.bash", "shell.zsh", "completion", "completions", "docker-env", "env", "init", "path", "--bash", "--zsh") {
				return true
			}
		}
	}
	return false
}

// judgeTool applies the rules of programs whose output does not matter.
func (s *shell) judgeTool(name string, args []field, in stream) {
	switch name {
	case "env", "genv":
		s.env(args, in)
	case "ssh", "autossh", "dbclient":
		s.ssh(args, in)
	case "su", "runuser":
		s.su(args, in)
	case "docker", "podman", "nerdctl", "docker-compose", "podman-compose":
		s.docker(name, args, in)
	case "kubectl", "oc", "k", "microk8s", "kubecolor":
		s.kubectl(args, in)
	case "tmux", "byobu":
		s.tmux(args, in)
	case "screen":
		s.screen(args, in)
	case "script", "flock", "vagrant", "nix-shell", "nix", "entr", "fly", "flyctl", "gcloud", "expect", "sg", "newgrp", "capsh", "machinectl", "at", "batch", "crontab":
		s.runner(name, args, in)
	case "python", "python2", "python3", "pypy", "pypy3", "ipython", "ipython3", "perl", "ruby", "irb", "jruby", "node", "nodejs", "deno", "bun", "php", "lua",
		"luajit", "osascript", "Rscript", "pwsh", "powershell", "tclsh", "groovy", "julia", "elixir", "cmd":
		s.interpreter(name, args, in)
	case "vim", "vi", "nvim", "ex", "view", "ed", "emacs", "gvim":
		s.editor(name, args, in)
	case "make", "gmake", "ninja", "just", "rake", "rails", "bin/rails":
		s.build(name, args, in)
	case "git", "hub":
		s.git(args, in)
	case "hg", "svn", "jj", "bfg":
		s.otherVCS(name, args)
	case "gh", "glab":
		p := parseFlags(args, "XtbFfHR", "method title body field raw-field header repo")
		if method, ok := p.value("X", "method"); ok && strings.EqualFold(method.s, "DELETE") || oneOf(p.arg(1), "delete", "remove", "archive") {
			s.found |= Teardown
		}
		if p.arg(0) == "auth" && p.arg(1) == "token" {
			s.found |= CredentialRead
		}
	case "psql", "mysql", "mariadb", "sqlite3", "sqlite", "duckdb", "clickhouse-client", "clickhouse", "sqlcmd", "cqlsh", "usql", "pgcli", "mycli", "litecli",
		"cockroach", "snowsql", "isql", "sqlplus", "beeline", "hive", "presto", "trino", "bq", "impala-shell", "mongo", "mongosh", "redis-cli", "valkey-cli", "influx":
		s.database(name, args, in)
	case "dropdb", "dropuser", "pg_dropcluster", "mysqladmin", "pg_resetwal", "dropcluster":
		p := parseFlags(args, "hpUuP", "host port username user password maintenance-db")
		if !p.help && len(p.args) > 0 && (name != "mysqladmin" || p.any("drop", "shutdown", "flush-hosts", "kill")) {
			s.found |= SQLUnfiltered
		}
	case "DROP", "drop", "Drop", "DELETE", "TRUNCATE", "UPDATE", "ALTER", "delete", "update", "alter":
		s.sql(name + " " + joinFields(args))
	default:
		if verb, ok := strings.CutPrefix(name, "git-"); ok {
			s.gitVerb(verb, args, in, false)
			return
		}
		if s.deletes(name, args, in) || s.system(name, args, in) || s.transfers(name, args, in) || s.tearsDown(name, args) {
			return
		}
		s.unknownRunner(name, args, in)
	}
}

// deletes applies the rules about files.
func (s *shell) deletes(name string, args []field, in stream) bool {
	switch name {
	case "rm", "grm", "srm", "safe-rm", "rmtrash", "trash", "trash-put", "rimraf", "del-cli", "shred", "gshred", "wipe", "scrub", "unlink", "gunlink", "rmdir", "grmdir", "rip":
		p := parseFlags(args, "", "interactive iterations size random-source")
		if p.help || name == "rm" && p.has("help") && len(p.args) == 0 {
			return true
		}
		if name == "rmdir" && len(args) > 0 && (strings.EqualFold(args[0].s, "/s") || strings.EqualFold(args[0].s, "/q")) {
			s.found |= RecursiveDelete
		}
		if len(p.args) > 0 {
			if name != "unlink" && name != "shred" && p.has("r", "R", "recursive") || name == "rimraf" {
				s.found |= RecursiveDelete
			}
			if p.has("f", "force") || !p.has("r", "R", "recursive") {
				s.found |= ForcedDelete
			}
			for _, a := range p.args {
				if isDevice(a.s) {
					s.found |= DeviceWrite
				}
			}
		}
	case "trash-empty", "trash-rm", "gio", "gvfs-trash", "kioclient":
		if name != "gio" && name != "kioclient" || len(args) > 1 && oneOf(args[0].s, "trash", "remove", "move") {
			s.found |= ForcedDelete
		}
	case "truncate", "gtruncate":
		p := parseFlags(args, "srI", "size reference")
		if size, ok := p.value("s", "size"); ok && !p.help && len(p.args) > 0 {
			n := strings.TrimLeft(size.s, " ")
			if n == "" || strings.ContainsAny(n[:1], "-<") || strings.Trim(n, "0KMGTPEZYBkib") == "" || n == "%0" {
				s.found |= EmptyFile
			}
		} else if len(p.args) > 0 && strings.EqualFold(p.args[0].s, "table") {
			s.sql("truncate " + joinFields(args))
		}
	case "fallocate":
		if p := parseFlags(args, "lo", "length offset"); p.has("p", "punch-hole", "c", "collapse-range", "z", "zero-range") {
			s.found |= EmptyFile
		}
	case "dd", "gdd", "dcfldd", "dc3dd":
		s.dd(args)
	case "cp", "gcp", "install", "mv", "gmv", "ln", "rsync", "scp":
		s.copies(name, args, in)
	case "tar", "gtar", "bsdtar", "zip", "7z", "7za", "rclone", "unison", "mc", "gsutil", "s3cmd", "s5cmd", "b2":
		s.archives(name, args, in)
	case "Remove-Item", "remove-item", "REMOVE-ITEM", "ri", "del", "erase", "rd", "DEL", "RD", "ERASE", "RMDIR", "Clear-Content", "clear-content", "deltree",
		"Clear-RecycleBin", "Format-Volume", "Clear-Disk", "Remove-Partition", "Initialize-Disk", "Stop-Computer", "Restart-Computer", "Stop-Process", "taskkill", "TASKKILL",
		"iex", "Invoke-Expression", "invoke-expression", "IEX", "Stop-Service", "vssadmin", "wbadmin", "bcdedit", "diskpart", "cipher", "icacls", "reg", "schtasks", "format":
		s.powershell(strings.ToLower(name), args, in)
	case "fsutil", "sdelete", "sdelete64":
		s.found |= ForcedDelete
	case "logrotate":
		if p := parseFlags(args, "s", "state"); p.has("f", "force") && !p.has("d", "debug") {
			s.found |= EmptyFile
		}
	case "journalctl":
		if p := parseFlags(args, "unptS", ""); p.has("vacuum-time", "vacuum-size", "vacuum-files") && !p.help {
			for _, n := range p.names {
				if strings.HasPrefix(n, "vacuum") {
					s.found |= EmptyFile
				}
			}
		}
	case "history", "fc":
		if p := parseFlags(args, "", ""); p.has("c", "d") {
			s.found |= EmptyFile
		}
	default:
		return false
	}
	return true
}

// find judges find and fd.
func (s *shell) find(args []field, in stream) {
	for i := 0; i < len(args); i++ {
		switch a := args[i].s; a {
		case "-delete":
			s.found |= RecursiveDelete
		case "--help", "-help", "--version":
			return
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			end := i + 1
			for end < len(args) && args[end].s != ";" && (args[end].s != "+" || args[end-1].s != "{}") {
				end++
			}
			cmd := append([]field(nil), args[i+1:end]...)
			for j := range cmd {
				if cmd[j].s == "{}" {
					cmd[j].s, cmd[j].unknown = hole, true
				}
			}
			if strings.HasPrefix(a, "-x") || strings.HasPrefix(a, "-X") || strings.HasPrefix(a, "--") {
				cmd = append(cmd, field{s: hole, unknown: true})
			}
			s.command(cmd, stream{})
			i = end
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-type", "-user", "-group", "-perm", "-size", "-mtime", "-printf", "-fprint", "-fprintf", "-lname":
			if i++; (a == "-fprint" || a == "-fprintf") && i < len(args) {
				s.writeTo(args[i])
			}
		}
	}
}

func (s *shell) dd(args []field) {
	var from, to field
	count, help := "", false
	for i, a := range args {
		key, value, _ := strings.Cut(a.s, "=")
		switch key {
		case "if":
			from = field{s: value, unknown: a.unknown, reads: a.reads}
		case "of":
			to = field{s: value, unknown: a.unknown}
		case "count":
			count = value
		case "--help", "--version":
			help = i == 0
		}
	}
	if help || to.s == "" {
		return
	}
	if isCredential(from.s) {
		s.found |= CredentialRead
	}
	s.writeTo(to)
	if !strings.HasPrefix(to.s, "/dev/") && (oneOf(from.s, "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full") || count == "0") {
		s.found |= EmptyFile
	}
}

// copies judges cp, mv, ln, install, rsync and scp.
func (s *shell) copies(name string, args []field, in stream) {
	short, long := "tSgmo", "target-directory suffix mode owner group backup"
	switch name {
	case "rsync":
		short, long = "efBMT", "rsh exclude include exclude-from include-from files-from rsync-path filter bwlimit log-file temp-dir partial-dir chmod port timeout password-file backup-dir suffix compare-dest link-dest max-size min-size"
	case "scp":
		short, long = "cFiJlDoPSX", ""
	}
	p := parseFlags(args, short, long)
	if p.help {
		return
	}
	if dir, ok := p.value("t", "target-directory"); ok && name != "rsync" && name != "scp" {
		p.args = append(p.args, dir)
	}
	if len(p.args) < 2 {
		return
	}
	from, to := p.args[:len(p.args)-1], p.args[len(p.args)-1]
	remote := false
	if name == "rsync" || name == "scp" {
		for _, key := range [...]string{"e", "rsh", "rsync-path", "S"} {
			if cmd, ok := p.value(key); ok {
				s.maybeRun(cmd.s)
			}
		}
		for _, o := range p.vals {
			if o.name == "o" {
				s.sshOption(o.value.s)
			}
		}
		at := strings.IndexByte(to.s, ':')
		remote = at > 0 && !strings.Contains(to.s[:at], "/")
	}
	if name == "rsync" {
		if p.dry("n", "dry-run") {
			return
		}
		for _, n := range p.names {
			if strings.HasPrefix(n, "delete") || strings.HasPrefix(n, "del") || n == "remove-source-files" || n == "remove-sent-files" {
				s.found |= RecursiveDelete
			}
		}
	}
	for _, a := range from {
		if isCredential(a.s) && name != "ln" {
			if s.found |= CredentialRead; remote {
				s.found |= Exfiltration
			}
		}
	}
	if mode, ok := p.value("m", "mode"); ok && name == "install" {
		s.chmod([]field{mode, to})
	}
	if name == "mv" && to.s == "/dev/null" {
		s.found |= ForcedDelete
		return
	}
	if name == "ln" && len(from) > 0 && isStartup(to.s) || name != "ln" {
		s.writeTo(to)
	}
	if isStartup(to.s) && len(from) > 0 && remote {
		s.found |= Persistence
	}
	if strings.HasPrefix(to.s, "/dev/") || to.s == "" {
		return
	}
	for _, a := range from {
		switch {
		case oneOf(a.s, "/dev/null", "/dev/zero"):
			s.found |= EmptyFile
		case !a.unknown && !to.unknown:
			if file, ok := s.files[path.Clean(a.s)]; ok {
				s.files[path.Clean(to.s)] = file
			}
		}
	}
}

func (s *shell) archives(name string, args []field, in stream) {
	p := parseFlags(args, "fCTIX", "file directory files-from use-compress-program checkpoint-action to-command exclude")
	if name == "rclone" && p.dry("n", "dry-run") || name != "tar" && p.dry("dry-run", "dryrun") || p.help {
		return
	}
	switch name {
	case "tar", "gtar", "bsdtar":
		if p.has("remove-files") {
			for _, n := range p.names {
				if len(n) > 4 && abbreviates(n, "remove-files") {
					s.found |= RecursiveDelete
				}
			}
		}
		for _, o := range p.vals {
			switch {
			case abbreviates(o.name, "checkpoint-action"):
				if text, ok := strings.CutPrefix(o.value.s, "exec="); ok {
					s.run(text, stream{})
				}
			case abbreviates(o.name, "to-command"), abbreviates(o.name, "use-compress-program"), o.name == "I":
				s.maybeRun(o.value.s)
			}
		}
		for _, a := range p.args {
			if isCredential(a.s) {
				s.found |= CredentialRead
			}
		}
	case "zip":
		if p.has("m", "move", "d", "delete") && len(p.args) > 0 {
			s.found |= ForcedDelete
		}
		for _, a := range p.args {
			if isCredential(a.s) {
				s.found |= CredentialRead
			}
		}
	case "7z", "7za":
		for _, a := range args {
			if a.s == "-sdel" {
				s.found |= ForcedDelete
			}
		}
	case "rclone":
		if oneOf(p.arg(0), "delete", "purge", "sync", "deletefile", "rmdir", "rmdirs", "cleanup", "move", "moveto") {
			s.found |= RecursiveDelete
		}
	default:
		if p.any("rm", "rb", "del", "delete", "delete-file-version", "delete-bucket", "delete-key") || p.any("rsync", "sync", "mirror") && p.has("d", "delete", "delete-removed", "remove") {
			s.found |= Teardown
		}
	}
}

// system applies the rules about devices, permissions, processes and the host.
func (s *shell) system(name string, args []field, in stream) bool {
	p := parseFlags(args, "", "")
	if p.help {
		switch name {
		case "kill", "pkill", "killall", "shutdown", "reboot", "halt", "poweroff", "chmod", "chown", "wipefs", "mkswap", "parted", "fdisk":
			return true
		}
	}
	switch base, _, _ := strings.Cut(name, "."); base {
	case "mkfs", "mke2fs", "mkswap", "newfs", "newfs_hfs", "newfs_msdos", "mkdosfs", "mkntfs", "mkudffs", "mkreiserfs":
		if len(p.args) > 0 && !p.has("n") || base == "mkswap" && len(p.args) > 0 {
			s.found |= DeviceWrite
		}
		return true
	}
	switch name {
	case "wipefs":
		if len(p.args) > 0 && p.has("a", "all", "o", "offset", "t", "types") && !p.dry("n", "no-act") {
			s.found |= DeviceWrite
		}
	case "fdisk", "sfdisk", "gdisk", "cfdisk", "cgdisk":
		if len(p.args) > 0 && !p.has("l", "list", "x", "d", "dump", "s", "show-size", "J", "json", "V", "verify", "n", "no-act") {
			s.found |= DeviceWrite
		}
	case "sgdisk":
		if len(p.args) > 0 && p.has("z", "zap", "Z", "zap-all", "o", "clear", "d", "delete", "n", "new", "g", "mbrtogpt", "l", "load-backup", "R", "replicate", "G", "t", "typecode", "s", "sort") && !p.has("P", "pretend") {
			s.found |= DeviceWrite
		}
	case "parted":
		if p.any("mklabel", "mktable", "rm", "mkpart", "resizepart", "rescue", "set", "toggle") {
			s.found |= DeviceWrite
		} else if len(args) > 0 && len(p.args) == 1 && !p.has("l", "list") {
			s.feedDevice(in)
		}
	case "blkdiscard", "badblocks", "hdparm", "nvme", "mdadm", "cryptsetup", "lvremove", "vgremove", "pvremove", "pvcreate", "lvreduce", "zpool", "zfs", "btrfs", "diskutil", "flashrom",
		"blkzone", "sg_format", "tune2fs", "nwipe", "e2image", "partx", "dmsetup", "losetup", "asr", "bioctl", "ddrescue", "cryptsetup-reencrypt", "flash_erase", "flash_eraseall", "mtd":
		s.devices(name, &p)
	case "chmod", "gchmod":
		s.chmod(args)
	case "mkdir":
		q := parseFlags(args, "m", "mode")
		if mode, ok := q.value("m", "mode"); ok {
			s.chmod(append([]field{mode}, q.args...))
		}
	case "chown", "chgrp", "gchown":
		if p.has("R", "recursive") {
			for i, a := range p.args {
				if i > 0 && isRoot(a.s) {
					s.found |= PermissionsAll
				}
			}
		}
	case "setfacl":
		for _, a := range args {
			for entry := range strings.SplitSeq(a.s, ",") {
				who, what, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(entry, "d:"), "default:"), ":")
				if (who == "o" || who == "other") && strings.Contains(what, "w") || (who == "o" || who == "other") && strings.ContainsAny(what, "2367") {
					s.found |= PermissionsAll
				}
			}
		}
	case "umask":
		if n, err := strconv.ParseUint(p.arg(0), 8, 16); err == nil && n&2 == 0 || strings.Contains(p.arg(0), "o=rw") || strings.Contains(p.arg(0), "a=rw") {
			s.found |= PermissionsAll
		}
	case "xhost":
		if p.any("+") {
			s.found |= PermissionsAll
		}
	case "kill", "gkill", "pkill", "killall", "skill", "killall5", "fuser", "xkill", "pidwait":
		s.kill(name, args)
	case "shutdown", "reboot", "halt", "poweroff", "telinit", "init", "systemctl", "service", "rc-service", "initctl", "loginctl", "pm2", "supervisorctl", "sv", "monit",
		"zellij", "abduco", "launchctl", "rundll32", "kexec", "pm-suspend", "pm-hibernate", "logoff", "brew":
		s.stops(name, &p, args)
	case "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "userdel", "deluser", "groupdel", "delgroup", "usermod", "passwd", "swapoff", "sysctl", "ip", "ifconfig",
		"apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "pacman", "rpm", "dpkg", "snap", "flatpak", "apk", "auditctl", "setenforce", "modprobe", "rmmod", "chpasswd", "visudo", "faillock", "lastlog", "mount", "umount", "chattr", "depmod", "update-rc.d", "dpkg-reconfigure", "vipw":
		s.host(name, &p, args)
	default:
		return false
	}
	return true
}

// feedDevice judges the commands that a partition editor reads.
func (s *shell) feedDevice(in stream) {
	if in.kind != noStream && in.kind != emptyStream {
		s.found |= DeviceWrite
	}
}

func (s *shell) devices(name string, p *flags) {
	bad := false
	switch name {
	case "badblocks":
		bad = p.has("w", "n")
	case "hdparm":
		for _, n := range p.names {
			bad = bad || strings.HasPrefix(n, "security-erase") || n == "trim-sector-ranges" || n == "write-sector" || strings.HasPrefix(n, "yes-i-know")
		}
	case "nvme":
		bad = p.any("format", "sanitize", "write", "write-zeroes", "delete-ns")
	case "mdadm":
		bad = p.has("zero-superblock", "C", "create")
	case "cryptsetup":
		bad = p.any("luksFormat", "erase", "luksErase", "luksKillSlot", "luksRemoveKey", "reencrypt", "luksDump-master")
	case "zpool":
		bad = oneOf(p.arg(0), "destroy", "create", "labelclear", "remove", "detach")
		if p.dry("n") {
			bad = false
		}
	case "zfs":
		bad = oneOf(p.arg(0), "destroy", "rollback") && !p.dry("n")
	case "btrfs":
		bad = p.any("delete", "del") || p.any("restore") && p.any("rescue")
	case "diskutil":
		verb := strings.ToLower(p.arg(0))
		bad = strings.HasPrefix(verb, "erase") || strings.HasPrefix(verb, "partition") || strings.Contains(verb, "zero") || strings.Contains(verb, "secureerase") || verb == "apfs" && strings.HasPrefix(strings.ToLower(p.arg(1)), "delete")
	case "flashrom":
		bad = p.has("w", "write", "E", "erase")
	case "tune2fs":
		bad = false
	case "partx":
		bad = p.has("d", "delete")
	case "dmsetup":
		bad = oneOf(p.arg(0), "remove", "remove_all", "wipe_table")
	case "losetup", "e2image", "bioctl", "mtd", "asr":
		bad = name == "mtd" && oneOf(p.arg(0), "erase", "write") || name == "asr" && p.any("restore")
	case "ddrescue":
		bad = len(p.args) > 1 && isDevice(p.arg(1))
	default:
		bad = len(p.args) > 0 && !p.has("help")
		if name == "lvremove" || name == "vgremove" || name == "pvremove" || name == "lvreduce" || name == "pvcreate" {
			bad = bad && !p.dry("t", "test")
		}
	}
	if bad {
		s.found |= DeviceWrite
	}
}

func (s *shell) chmod(args []field) {
	recursive := false
	mode, paths := "", args[:0:0]
	for i, a := range args {
		switch {
		case a.s == "--":
		case strings.HasPrefix(a.s, "--"):
			recursive = recursive || abbreviates(a.s[2:], "recursive")
			if a.s == "--help" || a.s == "--version" {
				return
			}
		case mode == "" && (len(a.s) < 2 || a.s[0] != '-' || strings.Trim(a.s, "-rwxXst,+=ugoa") == "" && !strings.Contains(a.s, "R")):
			mode = a.s
			_ = i
		case len(a.s) > 1 && a.s[0] == '-':
			recursive = recursive || strings.Contains(a.s, "R")
		default:
			paths = append(paths, a)
		}
	}
	if len(paths) == 0 {
		return
	}
	if n, err := strconv.ParseUint(mode, 8, 16); err == nil {
		if n&2 != 0 || n&0o4000 != 0 && n&0o111 != 0 {
			s.found |= PermissionsAll
		}
	} else {
		for clause := range strings.SplitSeq(mode, ",") {
			at := strings.IndexAny(clause, "+=-")
			if at < 0 {
				continue
			}
			who := clause[:at]
			if op := clause[at]; op == '-' {
				continue
			}
			others := strings.ContainsAny(who, "oa")
			perms := clause[at+1:]
			if n, err := strconv.ParseUint(perms, 8, 16); err == nil && n&2 != 0 {
				s.found |= PermissionsAll
			}
			if others && (strings.Contains(perms, "w") || strings.ContainsAny(perms, "u")) || strings.Contains(perms, "s") && strings.ContainsAny(who, "ua") {
				s.found |= PermissionsAll
			}
		}
	}
	if recursive {
		for _, a := range paths {
			if isRoot(a.s) {
				s.found |= PermissionsAll
			}
		}
	}
}

// isRoot reports whether the path is the root, a home or one of the system's own directories.
func isRoot(name string) bool {
	if name == "/*" {
		return true
	}
	return oneOf(path.Clean(name), "/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/opt", "/root", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/var", "/var/lib", "/dev", "/proc", "/System", "/Library", "/Users", "/etc/ssh") ||
		strings.HasSuffix(name, "/*") && isRoot(strings.TrimSuffix(name, "/*"))
}

// kill judges signals that leave no time for cleanup, and targets that are everybody.
func (s *shell) kill(name string, args []field) {
	if name == "xkill" {
		s.found |= Kill
		return
	}
	if name == "killall5" {
		s.found |= Shutdown
		return
	}
	hard, targets := false, 0
	isKill := func(sig string) bool {
		sig = strings.ToUpper(sig)
		return sig == "9" || sig == "KILL" || sig == "SIGKILL"
	}
	dashes := false
	for i := 0; i < len(args); i++ {
		a := args[i].s
		switch {
		case !dashes && a == "--":
			dashes = true
		case !dashes && oneOf(a, "-l", "-L", "--list", "--table", "-0", "--help", "--version", "-V"):
			return
		case !dashes && (oneOf(a, "-s", "-n", "--signal") || a == "-k" && name != "fuser"):
			if i++; i < len(args) {
				if args[i].s == "0" {
					return
				}
				hard = hard || isKill(args[i].s)
			}
		case !dashes && strings.HasPrefix(a, "--signal="):
			hard = hard || isKill(a[len("--signal="):])
		case !dashes && len(a) > 2 && strings.HasPrefix(a, "-s") && isKill(a[2:]):
			hard = true
		case !dashes && name == "fuser" && strings.HasPrefix(a, "-") && !isKill(a[1:]):
			if strings.Contains(a, "k") && a == strings.ToLower(a) || a == "--kill" {
				hard = true
			}
		case !dashes && len(a) > 1 && a[0] == '-' && isKill(a[1:]):
			hard = true
		case name == "kill" && a == "-1" && (dashes || i > 0):
			s.found |= Kill
		case !dashes && len(a) > 1 && a[0] == '-':
		default:
			targets++
		}
	}
	// A soft signal does not count, except where fuser's default is SIGKILL.
	if hard && (targets > 0 || name == "pkill" || name == "killall") {
		s.found |= Kill
	}
}

// stops judges what stops the host, a service or a session.
func (s *shell) stops(name string, p *flags, args []field) {
	verb := p.arg(0)
	switch name {
	case "shutdown":
		if !p.has("c", "k", "show") {
			s.found |= Shutdown
		}
	case "reboot", "halt", "poweroff":
		if !p.has("w", "wtmp-only") {
			s.found |= Shutdown
		}
	case "pm-suspend", "pm-hibernate", "logoff":
		s.found |= Shutdown
	case "init", "telinit":
		if oneOf(verb, "0", "1", "6", "S", "s") {
			s.found |= Shutdown
		}
	case "systemctl":
		switch {
		case oneOf(verb, "reboot", "poweroff", "halt", "kexec", "rescue", "emergency", "suspend", "hibernate", "exit", "isolate", "soft-reboot", "hybrid-sleep"):
			s.found |= Shutdown
		case oneOf(verb, "stop", "disable", "mask"):
			s.found |= Teardown
		case verb == "kill":
			for i, a := range args {
				if strings.Contains(strings.ToUpper(a.s), "KILL") && a.s != "kill" || a.s == "-s9" || a.s == "9" && i > 0 || a.s == "--signal=9" {
					s.found |= Kill
				}
			}
		}
	case "service", "rc-service", "initctl", "sv", "supervisorctl", "monit":
		if p.any("stop", "down", "shutdown", "force-stop") {
			s.found |= Teardown
		}
	case "loginctl":
		if strings.HasPrefix(verb, "terminate-") || strings.HasPrefix(verb, "kill-") {
			s.found |= Kill
		}
	case "pm2":
		if oneOf(verb, "kill", "delete", "del", "stop", "flush") {
			s.found |= Teardown
		}
	case "zellij":
		if oneOf(verb, "kill-session", "kill-all-sessions", "delete-session", "delete-all-sessions", "k", "ka", "d", "da") {
			s.found |= Kill
		}
	case "launchctl":
		switch {
		case oneOf(verb, "load", "bootstrap", "submit", "enable", "setenv"):
			s.found |= Persistence
		case oneOf(verb, "unload", "bootout", "remove", "kill", "reboot", "stop", "disable"):
			s.found |= Teardown
		}
	case "kexec":
		if p.has("e", "exec") {
			s.found |= Shutdown
		}
	case "rundll32":
		if strings.Contains(strings.ToLower(joinFields(args)), "shutdown") {
			s.found |= Shutdown
		}
	case "brew":
		if oneOf(verb, "uninstall", "remove", "rm", "untap") && !p.dry("n", "dry-run") {
			s.found |= Teardown
		}
	}
}

// host judges the firewall, accounts and packages.
func (s *shell) host(name string, p *flags, args []field) {
	bad := false
	verb := p.arg(0)
	switch name {
	case "iptables", "ip6tables":
		bad = p.has("F", "flush", "X", "delete-chain")
		for i, a := range args {
			bad = bad || a.s == "-P" && i+2 < len(args) && args[i+2].s == "ACCEPT"
		}
	case "nft":
		bad = p.any("flush", "delete")
	case "ufw":
		bad = p.any("disable", "reset") && !p.dry("dry-run")
	case "firewall-cmd":
		bad = p.has("panic-on", "complete-reload")
	case "userdel", "deluser", "groupdel", "delgroup":
		bad = len(p.args) > 0
	case "usermod":
		bad = p.has("L", "lock")
	case "passwd":
		bad = p.has("d", "delete", "l", "lock")
	case "swapoff":
		bad = p.has("a", "all")
	case "setenforce":
		bad = oneOf(strings.ToLower(verb), "0", "permissive")
	case "auditctl":
		bad = p.has("D")
		for i, a := range args {
			bad = bad || a.s == "-e" && i+1 < len(args) && args[i+1].s == "0"
		}
	case "ip":
		bad = p.any("flush") || p.any("netns") && p.any("delete", "del")
	case "apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "snap", "flatpak", "apk":
		bad = oneOf(verb, "remove", "purge", "autoremove", "autopurge", "erase", "del", "uninstall", "rm") && !p.dry("s", "simulate", "dry-run", "just-print", "no-act", "assumeno")
	case "pacman":
		bad = p.has("R", "remove") && !p.has("p", "print")
	case "rpm":
		bad = p.has("e", "erase") && !p.has("test", "q", "query")
	case "dpkg":
		bad = p.has("P", "purge", "r", "remove") && !p.dry("dry-run", "simulate", "no-act")
	case "rmmod":
		bad = p.has("f", "force")
	case "umount":
		bad = p.has("a", "all")
	case "sysctl":
		bad = strings.Contains(joinFields(args), "sysrq") && false
	}
	if bad {
		s.found |= Teardown
	}
}

// transfers applies the rules about networks.
func (s *shell) transfers(name string, args []field, in stream) bool {
	switch name {
	case "curl":
		s.curl(args, in)
	case "wget", "wget2", "aria2c", "axel", "lwp-request", "lynx", "w3m", "http", "https", "xh", "httpie", "fetch", "iwr", "Invoke-WebRequest":
		s.wget(name, args, in)
	case "nc", "ncat", "netcat", "socat", "telnet", "nc.traditional", "nc.openbsd":
		p := parseFlags(args, "wpsiXxqgGIoPTV", "wait source-port source")
		if name == "socat" {
			for _, a := range args {
				upper := strings.ToUpper(a.s)
				if _, cmd, ok := strings.Cut(a.s, ":"); ok && (strings.HasPrefix(upper, "EXEC:") || strings.HasPrefix(upper, "SYSTEM:")) {
					s.found |= Exfiltration
					cmd, _, _ = strings.Cut(cmd, ",")
					s.run(cmd, stream{})
				}
			}
		}
		if in.kind != noStream && in.kind != emptyStream && !p.has("z") || name != "socat" && p.has("e", "c", "exec", "sh-exec") {
			s.found |= Exfiltration
		}
	case "sftp", "ftp", "tftp", "lftp", "smbclient", "ncftpput":
		for _, a := range args {
			if isCredential(a.s) {
				s.found |= Exfiltration
			}
			if strings.Contains(a.s, "put ") {
				s.found |= Exfiltration
			}
		}
		if in.kind == textStream && strings.Contains(in.text, "put ") {
			s.found |= Exfiltration
		}
	case "ssh-copy-id":
		s.found |= Persistence
	case "security":
		if p := parseFlags(args, "", ""); oneOf(p.arg(0), "dump-keychain", "export", "find-generic-password", "find-internet-password") && (p.has("w", "g", "d") || p.arg(0) == "export") {
			s.found |= CredentialRead
		} else if strings.HasPrefix(p.arg(0), "delete-") {
			s.found |= ForcedDelete
		}
	case "secret-tool", "gopass", "bw":
		if p := parseFlags(args, "", ""); oneOf(p.arg(0), "lookup", "show", "get", "-c") {
			s.found |= CredentialRead
		} else if oneOf(p.arg(0), "rm", "clear", "delete") {
			s.found |= ForcedDelete
		}
	case "vim.tiny", "view", "base16", "cmp", "diff", "wc", "file", "stat", "source-highlight", "look", "split", "csplit", "shuf", "zless", "most", "pg", "bzless", "mail", "mailx", "mutt", "sendmail":
		for _, a := range args {
			if isCredential(a.s) && !oneOf(name, "stat", "file", "wc") {
				s.found |= CredentialRead
			}
		}
	default:
		return false
	}
	return true
}

func (s *shell) curl(args []field, in stream) {
	var method field
	remoteName, url := false, ""
	var outs []field
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value := "", field{}
		switch {
		case strings.HasPrefix(a.s, "--"):
			name = a.s[2:]
			if n, v, ok := strings.Cut(name, "="); ok {
				name, value = n, field{s: v, unknown: a.unknown, from: a.from}
			} else if i+1 < len(args) && listed("data data-ascii data-binary data-raw data-urlencode form form-string upload-file request output header user url config cookie cookie-jar user-agent referer max-time connect-timeout retry json proxy cacert cert key write-out", name) {
				i++
				value = args[i]
			}
		case len(a.s) > 1 && a.s[0] == '-':
			for j := 1; j < len(a.s); j++ {
				if c := a.s[j]; strings.IndexByte("dFToXHuAbcDeEhkKmPQrtUwxyYzC", c) >= 0 && c != 'k' {
					name, value = string(c), field{s: a.s[j+1:], unknown: a.unknown, from: a.from}
					if value.s == "" && i+1 < len(args) {
						i++
						value = args[i]
					}
					break
				} else if c == 'O' || c == 'J' {
					remoteName = true
				}
			}
		default:
			url = a.s
		}
		switch name {
		case "d", "data", "data-ascii", "data-binary", "data-urlencode", "json":
			if at := strings.IndexByte(value.s, '@'); at == 0 || at > 0 && name == "data-urlencode" && !strings.Contains(value.s[:at], "=") {
				s.found |= Exfiltration
				if isCredential(value.s[at+1:]) {
					s.found |= CredentialRead
				}
			}
			if value.from&CredentialRead != 0 {
				s.found |= Exfiltration
			}
		case "F", "form":
			if _, v, _ := strings.Cut(value.s, "="); strings.HasPrefix(v, "@") || strings.HasPrefix(v, "<") {
				s.found |= Exfiltration
			}
		case "T", "upload-file":
			s.found |= Exfiltration
		case "X", "request":
			method = value
		case "o", "output":
			outs = append(outs, value)
		case "remote-name", "remote-name-all", "O":
			remoteName = true
		case "url":
			url = value.s
		case "K", "config":
			if value.s == "-" && in.kind == unknownStream {
				s.found |= Opaque
			}
		case "help", "version":
			return
		}
	}
	if strings.EqualFold(method.s, "DELETE") {
		s.found |= Teardown
	}
	if remoteName {
		outs = append(outs, field{s: urlName(url)})
	}
	for _, o := range outs {
		s.download(o)
	}
}

// urlName returns the file name that a download of the URL gets.
func urlName(url string) string {
	url, _, _ = strings.Cut(url, "?")
	url, _, _ = strings.Cut(url, "#")
	return path.Base(url)
}

func (s *shell) download(f field) {
	if f.s == "" || f.s == "-" {
		return
	}
	s.write(f, stream{kind: unknownStream, from: RemoteExec}, true)
}

func (s *shell) wget(name string, args []field, in stream) {
	p := parseFlags(args, "OoPUteiaTQwlADRXBx", "output-document output-file directory-prefix user-agent tries timeout header post-data post-file body-data body-file method user password input-file load-cookies dir out")
	if file, ok := p.value("post-file", "body-file"); ok && file.s != "" {
		for _, n := range p.names {
			if len(n) > 3 && (abbreviates(n, "post-file") && n != "post-data" || abbreviates(n, "body-file")) {
				s.found |= Exfiltration
			}
		}
	}
	if m, ok := p.value("method"); ok && strings.EqualFold(m.s, "DELETE") || oneOf(name, "http", "https", "xh", "httpie") && p.any("DELETE") {
		s.found |= Teardown
	}
	if out, ok := p.value("O", "output-document", "o", "out"); ok {
		s.download(out)
		return
	}
	dir, _ := p.value("P", "directory-prefix", "d", "dir")
	for _, a := range p.args {
		if strings.Contains(a.s, "/") {
			s.download(field{s: path.Join(dir.s, urlName(a.s))})
		}
	}
}

// env judges env, which is a wrapper with an option whose value is split.
func (s *shell) env(args []field, in stream) {
	for len(args) > 0 {
		a := args[0].s
		switch {
		case a == "--":
			args = args[1:]
		case a == "-S" || a == "--split-string":
			if len(args) > 1 {
				s.run(args[1].code()+" "+requote(args[2:]), in)
			}
			return
		case strings.HasPrefix(a, "--split-string="):
			s.run(a[len("--split-string="):]+" "+requote(args[1:]), in)
			return
		case a == "--help" || a == "--version":
			return
		case len(a) > 1 && a[0] == '-' && !strings.HasPrefix(a, "--"):
			if at := strings.IndexByte(a, 'S'); at > 0 && !strings.ContainsAny(a[:at], "uC") {
				s.run(a[at+1:]+" "+requote(args[1:]), in)
				return
			}
			args = args[1:]
			if c := a[len(a)-1]; (c == 'u' || c == 'C') && len(args) > 0 {
				args = args[1:]
			}
		case oneOf(a, "--unset", "--chdir", "--argv0"):
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "--"):
			args = args[1:]
		case isAssignment(a):
			name, value, _ := strings.Cut(args[0].code(), "=")
			s.assigned(name, value)
			args = args[1:]
		default:
			s.command(args, in)
			return
		}
	}
}

// assigned judges an assignment that a later command runs.
func (s *shell) assigned(name, value string) {
	switch name {
	case "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "precmd", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
		"GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "CVS_RSH", "BROWSER", "GIT_ASKPASS", "SSH_ASKPASS", "FZF_DEFAULT_COMMAND":
		if strings.HasPrefix(name, "PS") {
			value = `: "` + value + `"`
		}
		s.maybeRun(strings.TrimLeft(value, "|"))
	}
}

// maybeRun runs a text that may never run.
func (s *shell) maybeRun(text string) {
	if text == "" || scanGate(text) == 0 {
		return
	}
	s.branch++
	s.inSubshell(false, func() stream { return s.run(text, stream{}) })
	s.branch--
}

func (s *shell) setParams(args []field) {
	for len(args) > 0 {
		a := args[0].s
		if a == "--" {
			s.params, s.hasParams = append([]field(nil), args[1:]...), true
			return
		}
		if a == "-o" || a == "+o" {
			args = args[min(2, len(args)):]
			continue
		}
		if len(a) > 1 && (a[0] == '-' || a[0] == '+') {
			args = args[1:]
			continue
		}
		s.params, s.hasParams = append([]field(nil), args...), true
		return
	}
}

// read assigns what is read from a known text; otherwise the names are unknown.
func (s *shell) read(name string, args []field, in stream) {
	p := parseFlags(args, "adinNptu", "")
	if name != "read" {
		for _, a := range p.args {
			s.bind(a.s, shellVar{from: in.from})
		}
		return
	}
	line, ok := "", in.kind == textStream
	if ok {
		end, hasEnd := p.value("d")
		if line = in.text; !hasEnd {
			end.s = "\n"
		}
		if end.s != "" {
			line, _, _ = strings.Cut(line, end.s[:1])
		}
	}
	names := p.args
	if array, isArray := p.value("a"); isArray {
		s.bind(array.s, shellVar{values: strings.Fields(line), known: ok, from: in.from})
		return
	}
	if len(names) == 0 {
		names = []field{{s: "REPLY"}}
	}
	words := strings.Fields(line)
	for i, n := range names {
		v := shellVar{known: ok, from: in.from, values: []string{""}}
		switch {
		case i == 0 && len(names) == 1:
			v.values[0] = strings.TrimSpace(line)
		case i == len(names)-1 && i < len(words):
			v.values[0] = strings.Join(words[i:], " ")
		case i < len(words):
			v.values[0] = words[i]
		}
		if ok && s.loops > 0 {
			v.known, v.values = false, nil // a later turn reads another line
		}
		s.bind(n.s, v)
	}
}

// echo returns what echo prints.
func echo(args []field) stream {
	newline, escapes := true, false
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' && strings.Trim(args[0].s[1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0].s, "n")
		escapes = escapes || strings.Contains(args[0].s, "e")
		args = args[1:]
	}
	var from Detectors
	empty, whole := true, true
	for _, a := range args {
		from |= a.from
		empty = empty && a.s == ""
		whole = whole && !a.unknown
	}
	if empty {
		return stream{kind: emptyStream, from: from}
	}
	if !whole && from&runnable != 0 {
		return stream{kind: unknownStream, from: from}
	}
	text := joinFields(args)
	out := stream{kind: textStream, text: text, from: from}
	if strings.Contains(text, `\`) {
		if out.alt = string(appendANSI(nil, text)); escapes {
			out.text = out.alt
		}
	}
	if newline {
		out.text += "\n"
	}
	return out
}

// printf returns what printf prints.
func (s *shell) printf(args []field) stream {
	if len(args) > 1 && args[0].s == "-v" {
		out := s.printf(args[2:])
		s.bind(args[1].s, shellVar{values: []string{out.text}, known: out.kind == textStream, from: out.from})
		return stream{kind: emptyStream}
	}
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return stream{kind: emptyStream}
	}
	var from Detectors
	for _, a := range args {
		from |= a.from
		if a.unknown && from&runnable != 0 {
			return stream{kind: unknownStream, from: from}
		}
	}
	format, rest := args[0].code(), args[1:]
	var b []byte
	for turn := 0; turn == 0 || len(rest) > 0 && turn < maxExpanded && len(b) < maxValue; turn++ {
		used := false
		start := 0
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				continue
			}
			b = appendANSI(b, format[start:i])
			i++
			for i < len(format)-1 && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
				i++
			}
			arg := ""
			if format[i] != '%' && len(rest) > 0 {
				arg, rest = rest[0].code(), rest[1:]
				used = true
			}
			switch format[i] {
			case '%':
				b = append(b, '%')
			case 'b':
				b = appendANSI(b, arg)
			case 'c':
				b = append(b, arg[:min(1, len(arg))]...)
			case 's', 'd', 'i', 'u':
				b = append(b, arg...)
			case 'q':
				b = append(b, requote([]field{{s: arg}})...)
			default:
				return stream{kind: unknownStream, from: from}
			}
			start = i + 1
		}
		b = appendANSI(b, format[start:])
		if !used {
			break
		}
	}
	out := textOf(string(b))
	out.from = from
	return out
}

// filter judges programs that read files and print something made of them.
func (s *shell) filter(name string, args []field, in stream) stream {
	pattern := oneOf(name, "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "tr")
	short, long := "", ""
	switch name {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack":
		short, long = "efmABCdDgtTEj", "regexp file max-count after-context before-context context include exclude exclude-dir glob type color colour"
	case "sed", "gsed":
		short, long = "efl", "expression file line-length"
	case "awk", "gawk", "mawk", "nawk":
		short, long = "Ffveio", "field-separator file assign source include"
	case "head", "tail":
		short, long = "nc", "lines bytes pid"
	case "cut":
		short, long = "bcdf", "bytes characters delimiter fields output-delimiter"
	case "sort":
		short, long = "koStT", "key output buffer-size field-separator temporary-directory compress-program"
	case "base64":
		short, long = "wibo", "wrap input output"
	case "bat", "batcat":
		short, long = "lHr", "language highlight-line line-range style theme"
	case "openssl":
		short = ""
	}
	p := parseFlags(args, short, long)
	if p.help {
		return unknown
	}
	files := p.args
	script := ""
	if pattern && !p.has("e", "f", "regexp", "file", "expression", "source") && len(files) > 0 {
		script, files = files[0].code(), files[1:]
	} else if e, ok := p.value("e", "expression", "source"); ok && pattern {
		script = e.code()
	}
	out := in
	for i, a := range files {
		if isCredential(a.s) {
			s.found |= CredentialRead
		}
		if oneOf(name, "tr", "jq", "yq") && name == "tr" {
			break
		}
		if a.s == "-" {
			continue
		}
		if st := s.open(a); i == 0 {
			out = st
		} else {
			out = out.followedBy(st)
		}
	}
	switch name {
	case "cat", "bat", "batcat":
		if len(files) == 0 {
			return in
		}
		return out
	case "sed", "gsed":
		s.sedScript(script, &p)
	case "awk", "gawk", "mawk", "nawk":
		s.code("awk", script)
	case "sort":
		if o, ok := p.value("o", "output"); ok {
			s.writeTo(o)
		}
		if cmd, ok := p.value("compress-program"); ok {
			s.maybeRun(cmd.s)
		}
	case "less", "more":
		for _, a := range args {
			if text, ok := strings.CutPrefix(a.s, "+!"); ok {
				s.run(text, stream{})
			}
		}
	case "openssl":
		if len(args) > 0 && oneOf(args[0].s, "s_client") && in.kind > emptyStream {
			s.found |= Exfiltration
		}
	case "gpg", "gpg2":
		if p.has("export-secret-keys", "export-secret-subkeys") {
			for _, n := range p.names {
				if strings.HasPrefix(n, "export-secret") {
					s.found |= CredentialRead
				}
			}
		}
		for _, n := range p.names {
			if strings.HasPrefix(n, "delete-") {
				s.found |= ForcedDelete
			}
		}
	}
	if out.kind == emptyStream {
		return out
	}
	if name == "head" || name == "tail" {
		for _, o := range p.vals {
			if o.value.s == "0" {
				return stream{kind: emptyStream}
			}
		}
	}
	out.from &^= generated
	from := out.from
	switch name {
	case "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "sort", "uniq", "nl":
		if out.kind == textStream && strings.Count(out.text, "\n") <= 1 && !pattern && name != "nl" {
			return out
		}
	case "base64", "base32", "basenc":
		if p.has("d", "D", "decode", "di") {
			from |= DecodedExec
		}
	case "xxd":
		if p.has("r", "revert") {
			from |= DecodedExec
		}
	default:
		from |= DecodedExec
	}
	return stream{kind: unknownStream, from: from}
}

// sedScript judges the commands of sed that run or empty something.
func (s *shell) sedScript(script string, p *flags) {
	inPlace := p.has("i", "in-place")
	if inPlace {
		for _, a := range p.args {
			s.writeTo(a)
		}
		if oneOf(strings.TrimSpace(script), "d", "1,$d", "1,$ d", "/.*/d", "/^/d", "/$/d") {
			s.found |= EmptyFile
		}
	}
	// The e command runs a line; the e flag runs the result of a substitution.
	for part := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		part = strings.TrimLeft(strings.TrimSpace(part), "0123456789,$!~+ {")
		if len(part) > 1 && part[0] == 'e' && (part[1] == ' ' || part[1] == '\t') {
			s.run(part[2:], stream{})
		}
		if len(part) > 3 && part[0] == 's' {
			pieces := strings.Split(part[2:], part[1:2])
			if len(pieces) == 3 && strings.Contains(pieces[2], "e") && strings.Trim(pieces[2], "egipmIM0123456789 }") == "" {
				s.run(pieces[1], stream{})
				s.found |= Opaque
			}
		}
	}
}

// lookUp judges which, type and command; the latter also runs.
func (s *shell) lookUp(name string, args []field, in stream) stream {
	if name == "command" {
		if len(args) == 0 || !strings.HasPrefix(args[0].s, "-") || oneOf(args[0].s, "-p", "--") {
			for len(args) > 0 && oneOf(args[0].s, "-p", "--") {
				args = args[1:]
			}
			return s.command(args, in)
		}
		args = args[1:]
	}
	if name != "type" && len(args) > 0 && !args[len(args)-1].unknown && !strings.HasPrefix(args[len(args)-1].s, "-") {
		return textOf(args[len(args)-1].s + "\n")
	}
	return unknown
}

// unknownRunner judges a program that is not known, but is called as those that
// run another one are: with the command behind "--", exec or run.
func (s *shell) unknownRunner(name string, args []field, in stream) {
	switch name {
	case "man", "whatis", "apropos", "info", "tldr", "help", "whereis", "hash", "ls", "ll", "npm", "yarn", "pnpm", "cargo", "go", "apt-cache", "gem", "logger", "notify-send", "say", "wall", "cheat", "shellcheck", "shfmt", "test", "[", "pytest", "systemd-analyze", "ps", "pgrep":
		if !oneOf(name, "npm", "yarn", "pnpm") {
			return
		}
	}
	for i, a := range args {
		if !oneOf(a.s, "--", "exec", "run", "x", "dlx") || i+1 == len(args) {
			continue
		}
		rest := args[i+1:]
		if rest[0].s == "--" && len(rest) > 1 {
			rest = rest[1:]
		}
		if !rest[0].unknown && isRunName(baseName(rest[0].s)) {
			s.command(rest, in)
			return
		}
	}
}

// isRunName reports whether the name is that of a command that is dangerous on its own, or of a shell.
func isRunName(name string) bool {
	switch name {
	case "rm", "rmdir", "unlink", "shred", "srm", "wipe", "dd", "sh", "bash", "zsh", "dash", "ksh", "find", "truncate", "kill", "pkill", "killall", "sudo", "env", "xargs", "git", "rimraf",
		"chmod", "chown", "reboot", "shutdown", "poweroff", "halt", "psql", "mysql", "dropdb", "python", "python3", "perl", "ruby", "node", "terraform", "kubectl", "aws", "curl", "nc", "timeout", "nohup":
		return true
	}
	return strings.HasPrefix(name, "mkfs")
}
