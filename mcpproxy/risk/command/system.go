package command

import (
	"path"
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/command/infra"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// system applies the rules about devices, permissions, processes and the host.
func (s rules) system(name string, args []shell.Field, in shell.Stream) bool {
	p := shell.ParseFlags(args, "", "")
	if p.Help {
		switch name {
		case "kill", "pkill", "killall", "shutdown", "reboot", "halt", "poweroff", "chmod", "chown", "wipefs", "mkswap", "parted", "fdisk":
			return true
		}
	}
	switch base, _, _ := strings.Cut(name, "."); base {
	case "mkfs", "mke2fs", "mkswap", "newfs", "newfs_hfs", "newfs_msdos", "mkdosfs", "mkntfs", "mkudffs", "mkreiserfs":
		if len(p.Args) > 0 && !p.Has("n") || base == "mkswap" && len(p.Args) > 0 {
			s.Add(detector.DeviceWrite)
		}
		return true
	}
	switch name {
	case "wipefs":
		if len(p.Args) > 0 && p.Has("a", "all", "o", "offset", "t", "types") && !p.Dry("n", "no-act") {
			s.Add(detector.DeviceWrite)
		}
	case "fdisk", "sfdisk", "gdisk", "cfdisk", "cgdisk":
		if len(p.Args) > 0 && !p.Has("l", "list", "x", "d", "dump", "s", "show-size", "J", "json", "V", "verify", "n", "no-act") {
			s.Add(detector.DeviceWrite)
		}
	case "sgdisk":
		if len(p.Args) > 0 && p.Has("z", "zap", "Z", "zap-all", "o", "clear", "d", "delete", "n", "new", "g", "mbrtogpt", "l", "load-backup", "R", "replicate", "G", "t", "typecode", "s", "sort") && !p.Has("P", "pretend") {
			s.Add(detector.DeviceWrite)
		}
	case "parted":
		if p.Any("mklabel", "mktable", "rm", "mkpart", "resizepart", "rescue", "set", "toggle") {
			s.Add(detector.DeviceWrite)
		} else if len(args) > 0 && len(p.Args) == 1 && !p.Has("l", "list") {
			s.feedDevice(in)
		}
	case "blkdiscard", "badblocks", "hdparm", "nvme", "mdadm", "cryptsetup", "lvremove", "vgremove", "pvremove", "pvcreate", "lvreduce", "zpool", "zfs", "btrfs", "diskutil", "flashrom",
		"blkzone", "sg_format", "scsi_format", "sg_sanitize", "nwipe", "e2image", "partx", "dmsetup", "losetup", "asr", "bioctl", "ddrescue", "cryptsetup-reencrypt", "flash_erase", "flash_eraseall", "mtd", "xfs_repair", "debugfs", "fastboot":
		s.devices(name, &p)
	case "chmod", "gchmod":
		s.chmod(args)
	case "mkdir":
		q := shell.ParseFlags(args, "m", "mode")
		if mode, ok := q.Value("m", "mode"); ok {
			s.chmod(append([]shell.Field{mode}, q.Args...))
		}
	case "chown", "chgrp", "gchown":
		if p.Has("R", "recursive") {
			for i, a := range p.Args {
				if i > 0 && isRoot(a.Text) {
					s.Add(detector.PermissionsAll)
				}
			}
		}
	case "setfacl":
		for _, a := range args {
			for entry := range strings.SplitSeq(a.Text, ",") {
				who, what, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(entry, "d:"), "default:"), ":")
				if (who == "o" || who == "other") && strings.Contains(what, "w") || (who == "o" || who == "other") && strings.ContainsAny(what, "2367") {
					s.Add(detector.PermissionsAll)
				}
			}
		}
	case "umask":
		if n, err := strconv.ParseUint(p.Arg(0), 8, 16); err == nil && n&2 == 0 || strings.Contains(p.Arg(0), "o=rw") || strings.Contains(p.Arg(0), "a=rw") {
			s.Add(detector.PermissionsAll)
		}
	case "xhost":
		if p.Any("+") {
			s.Add(detector.PermissionsAll)
		}
	case "kill", "gkill", "pkill", "killall", "skill", "killall5", "fuser", "xkill", "pidwait":
		s.kill(name, args)
	case "shutdown", "reboot", "halt", "poweroff", "telinit", "init", "systemctl", "service", "rc-service", "initctl", "loginctl", "pm2", "supervisorctl", "sv", "monit",
		"zellij", "abduco", "launchctl", "rundll32", "kexec", "pm-suspend", "pm-hibernate", "logoff", "brew":
		infra.Stops(s.Shell, name, &p, args)
	case "defaults":
		if p.Arg(0) == "write" && shell.OneOf(p.Arg(2), "LoginHook", "LogoutHook") {
			s.Add(detector.Persistence)
		}
	case "kill-port", "fkill":
		if len(p.Args) > 0 {
			s.Add(detector.Kill)
		}
	case "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "userdel", "deluser", "groupdel", "delgroup", "usermod", "useradd", "adduser", "gpasswd", "setcap", "passwd", "swapoff", "sysctl", "ip", "ifconfig",
		"apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "pacman", "rpm", "dpkg", "snap", "flatpak", "apk", "auditctl", "setenforce", "modprobe", "rmmod", "chpasswd", "visudo", "faillock", "lastlog", "mount", "umount", "chattr", "depmod", "update-rc.d", "dpkg-reconfigure", "vipw",
		"pip", "pip2", "pip3", "conda", "mamba", "micromamba", "pkg", "pkgin", "opkg", "emerge", "xbps-remove", "nix-env", "guix", "port", "choco", "winget", "scoop", "tdnf", "microdnf", "eopkg",
		"exim", "exim4", "postsuper", "pfctl", "ipset", "dscl", "nix-collect-garbage", "sysadminctl", "dsenableroot", "dseditgroup", "pw":
		infra.Host(s.Shell, name, &p, args)
	default:
		return false
	}
	return true
}

// feedDevice judges the commands that a partition editor reads.
func (s rules) feedDevice(in shell.Stream) {
	if in.Kind != shell.None && in.Kind != shell.Empty {
		s.Add(detector.DeviceWrite)
	}
}

func (s rules) devices(name string, p *shell.Flags) {
	bad := false
	switch name {
	case "badblocks":
		bad = p.Has("w")
	case "hdparm":
		for _, n := range p.Names {
			bad = bad || strings.HasPrefix(n, "security-erase") || n == "trim-sector-ranges" || n == "write-sector" || strings.HasPrefix(n, "yes-i-know")
		}
	case "nvme":
		bad = p.Any("format", "sanitize", "write", "write-zeroes", "delete-ns")
	case "mdadm":
		bad = p.Has("zero-superblock", "C", "create", "f", "fail", "set-faulty", "r", "remove")
		if p.Has("S", "stop") {
			s.Add(detector.Teardown)
		}
	case "cryptsetup":
		bad = p.Any("luksFormat", "erase", "luksErase", "luksKillSlot", "luksRemoveKey", "reencrypt", "luksDump-master")
	case "zpool":
		bad = shell.OneOf(p.Arg(0), "destroy", "create", "labelclear", "remove", "detach")
		if p.Dry("n") {
			bad = false
		}
	case "zfs":
		bad = shell.OneOf(p.Arg(0), "destroy", "rollback") && !p.Dry("n")
	case "btrfs":
		bad = p.Any("delete", "del") || p.Any("restore") && p.Any("rescue")
	case "diskutil":
		verb := strings.ToLower(p.Arg(0))
		bad = strings.HasPrefix(verb, "erase") || strings.HasPrefix(verb, "partition") || strings.Contains(verb, "zero") || strings.Contains(verb, "secureerase") ||
			verb == "apfs" && strings.HasPrefix(strings.ToLower(p.Arg(1)), "delete")
	case "flashrom":
		bad = p.Has("w", "write", "E", "erase")
	case "xfs_repair":
		bad = p.Has("L")
	case "debugfs":
		bad = p.Has("w")
	case "fastboot":
		bad = shell.OneOf(p.Arg(0), "erase", "format", "flash", "flashall", "oem")
	case "partx":
		bad = p.Has("d", "delete")
	case "dmsetup":
		bad = shell.OneOf(p.Arg(0), "remove", "remove_all", "wipe_table")
	case "losetup", "e2image", "bioctl", "mtd", "asr":
		bad = name == "mtd" && shell.OneOf(p.Arg(0), "erase", "write") || name == "asr" && p.Any("restore")
	case "ddrescue":
		bad = len(p.Args) > 1 && place.IsDevice(p.Arg(1))
	default:
		bad = len(p.Args) > 0 && !p.Has("help")
		if name == "lvremove" || name == "vgremove" || name == "pvremove" || name == "lvreduce" || name == "pvcreate" {
			bad = bad && !p.Dry("t", "test")
		}
	}
	if bad {
		s.Add(detector.DeviceWrite)
	}
}

func (s rules) chmod(args []shell.Field) {
	recursive := false
	mode, paths := "", args[:0:0]
	for _, a := range args {
		switch {
		case a.Text == "--":
		case strings.HasPrefix(a.Text, "--"):
			recursive = recursive || shell.Abbreviates(a.Text[2:], "recursive")
			if a.Text == "--help" || a.Text == "--version" {
				return
			}
		case mode == "" && (len(a.Text) < 2 || a.Text[0] != '-' || strings.Trim(a.Text, "-rwxXst,+=ugoa") == "" && !strings.Contains(a.Text, "R")):
			mode = a.Text
		case len(a.Text) > 1 && a.Text[0] == '-':
			recursive = recursive || strings.Contains(a.Text, "R")
		default:
			paths = append(paths, a)
		}
	}
	if len(paths) == 0 {
		return
	}
	if n, err := strconv.ParseUint(mode, 8, 16); err == nil {
		if n&2 != 0 || n&0o4000 != 0 && n&0o111 != 0 {
			s.Add(detector.PermissionsAll)
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
				s.Add(detector.PermissionsAll)
			}
			if others && (strings.Contains(perms, "w") || strings.ContainsAny(perms, "u")) || strings.Contains(perms, "s") && (who == "" || strings.ContainsAny(who, "ua")) {
				s.Add(detector.PermissionsAll)
			}
		}
	}
	if recursive {
		for _, a := range paths {
			if isRoot(a.Text) {
				s.Add(detector.PermissionsAll)
			}
		}
	}
}

// isRoot reports whether the path is the root, a home or one of the system's own directories.
func isRoot(name string) bool {
	if name == "/*" {
		return true
	}
	return shell.In(path.Clean(name), "/ /bin /boot /etc /home /lib /lib64 /opt /root /sbin /srv /sys /usr /usr/bin /usr/lib /usr/local /var /var/lib /dev /proc /System /Library /Users /etc/ssh") ||
		strings.HasSuffix(name, "/*") && isRoot(strings.TrimSuffix(name, "/*"))
}

// kill judges signals that leave no time for cleanup, and targets that are everybody.
func (s rules) kill(name string, args []shell.Field) {
	if name == "xkill" {
		s.Add(detector.Kill)
		return
	}
	if name == "killall5" {
		s.Add(detector.Shutdown)
		return
	}
	hard, targets := false, 0
	isKill := func(sig string) bool {
		sig = strings.ToUpper(sig)
		return sig == "9" || sig == "KILL" || sig == "SIGKILL"
	}
	dashes := false
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		switch {
		case !dashes && a == "--":
			dashes = true
		case !dashes && shell.OneOf(a, "-l", "-L", "--list", "--table", "-0", "--help", "--version", "-V"):
			return
		case !dashes && (shell.OneOf(a, "-s", "-n", "--signal") || a == "-k" && name != "fuser"):
			if i++; i < len(args) {
				if args[i].Text == "0" {
					return
				}
				hard = hard || isKill(args[i].Text)
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
			s.Add(detector.Kill)
		case !dashes && len(a) > 1 && a[0] == '-':
		default:
			targets++
		}
	}
	// A soft signal does not count, except where fuser's default is SIGKILL.
	if shell.OneOf(name, "pkill", "killall", "skill") {
		p := shell.ParseFlags(args, "uUGgPst", "euid uid user group pgroup parent session terminal signal ns pidfile")
		if len(p.Args) == 0 && p.Has("u", "U", "euid", "uid", "user", "t", "terminal") {
			s.Add(detector.Kill) // all that a user runs, or on a terminal
		}
	}
	if hard && (targets > 0 || name == "pkill" || name == "killall") {
		s.Add(detector.Kill)
	}
}
