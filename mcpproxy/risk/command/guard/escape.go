package guard

import (
	"path"
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// escapes judges what gives a process the rights of the host's administrator: a
// container that has the host, the namespaces of process 1, code in the kernel.
func escapes(s *shell.Shell, name string, args []shell.Field) {
	bad := false
	switch name {
	case "docker", "podman", "nerdctl", "ctr", "docker-compose", "podman-compose":
		bad = containerHasHost(args)
	case "lxc", "incus":
		text := shell.Join(args)
		bad = shell.HasAny(text, "security.privileged=true", "security.privileged true", "raw.lxc") ||
			strings.Contains(text, " disk ") && shell.HasAny(text+" ", "source=/ ", "source=/root", "source=/etc")
	case "nsenter":
		p := shell.ParseFlags(args, "tSGrwW", "target setuid setgid root wd wdns")
		target, ok := p.Value("t", "target")
		bad = ok && target.Text == "1"
		for _, a := range args {
			bad = bad || strings.Contains(a.Text, "/proc/1/ns")
		}
	case "chroot":
		root := path.Clean(verb(args, 0))
		bad = strings.HasSuffix(root, "/proc/1/root") || strings.HasPrefix(root, "/host") || shell.OneOf(root, "/rootfs", "/mnt/host", "/mnt/root")
	case "insmod", "kextload":
		bad = verb(args, 0) != ""
	case "kldload":
		bad = verb(args, 0) != "" && !isUsualModule(verb(args, 0))
	case "kmutil":
		bad = verb(args, 0) == "load"
	case "modprobe":
		bad = loadsModule(args)
	case "unshare":
		outer := args[:len(args)-len(shell.AfterOptions(args, "SGRwl", "propagation setgroups setuid setgid root wd map-user map-group map-users map-groups kill-child"))]
		p := shell.ParseFlags(outer, "SGRwl", "")
		bad = !p.Help && p.Has("r", "c", "map-root-user")
	case "psexec", "psexec64", "paexec":
		bad = hasWord(args, "-s", "/s")
	case "mount":
		mountsOver(s, args)
	case "sudo", "sudo-rs", "doas", "pkexec", "su", "run0", "machinectl":
		bad = isRootShell(name, args)
	case "sysctl":
		for _, a := range args {
			key, value, _ := strings.Cut(strings.ReplaceAll(a.Text, "/", "."), "=")
			switch key {
			case "kernel.core_pattern":
				bad = bad || strings.HasPrefix(strings.TrimSpace(value), "|")
			case "kernel.modprobe", "kernel.hotplug":
				bad = bad || value != ""
			}
		}
	case "kubectl", "oc", "k", "kubecolor":
		bad = podHasHost(args)
	}
	if bad {
		s.Add(detector.PrivilegeEscalation)
	}
}

// loadsModule reports whether modprobe loads code of an unusual module, or from an unusual
// place.
func loadsModule(args []shell.Field) bool {
	p := shell.ParseFlags(args, "dCS", "dirname config set-version")
	if p.Help || len(p.Args) == 0 {
		return false
	}
	if p.Has("d", "dirname", "f", "force", "force-vermagic", "force-modversion") || strings.Contains(p.Arg(0), "/") {
		return true
	}
	if p.Has("r", "remove", "n", "dry-run", "show", "simulate", "D", "show-depends", "c", "showconfig", "show-modversions", "dump-modversions", "R", "resolve-alias") {
		return false
	}
	if !p.Has("a", "all") {
		p.Args = p.Args[:1] // parameters follow
	}
	return slices.ContainsFunc(p.Args, func(a shell.Field) bool { return !isUsualModule(a.Text) })
}

// isUsualModule reports whether work on containers, networks and hardware loads a module
// of the kernel by this name. Any other may be a rootkit's.
func isUsualModule(name string) bool {
	name = strings.ReplaceAll(strings.TrimSuffix(name, ".ko"), "-", "_")
	switch name {
	case "fuse", "cuse", "overlay", "aufs", "loop", "nbd", "rbd", "tun", "tap", "dummy", "veth", "bridge", "br_netfilter", "wireguard", "ifb", "bonding", "8021q", "macvlan", "ipvlan", "vxlan", "geneve", "zram", "brd",
		"btrfs", "xfs", "ext4", "zfs", "nfs", "nfsd", "cifs", "ksmbd", "vfat", "exfat", "ntfs3", "squashfs", "isofs", "udf", "ceph", "9p", "virtiofs", "binfmt_misc", "msr", "cpuid", "rtc", "uinput", "evdev", "joydev", "pcspkr",
		"softdog", "configs", "vcan", "can", "can_raw", "gre", "sit", "nvidia", "nouveau", "amdgpu", "radeon", "i915", "xe", "vkms", "vgem", "kheaders", "null_blk", "tcp_bbr", "sctp", "l2tp_ppp", "ppp_generic", "openvswitch":
		return true
	}
	for _, prefix := range [...]string{"nf_", "nft_", "xt_", "ip_", "ip6_", "ip6t", "ipt_", "iptable_", "ip6table_", "ebt", "arp_", "arpt", "sch_", "cls_", "act_", "kvm", "vhost", "virtio", "vfio", "vbox", "vmw_", "hv_", "xen_", "snd", "usb", "vhci", "uvc", "v4l2", "video",
		"i2c_", "spi_", "gpio", "w1_", "dm_", "raid", "md_", "scsi", "sd_", "ata_", "nvme", "nvidia_", "iscsi", "target_core", "ib_", "rdma", "mlx", "bluetooth", "bt", "rfcomm", "cfg80211", "mac80211", "iwl", "rtl", "ath", "brcm", "cdc_", "crypto", "af_", "tcp_", "inet_", "nls_", "hid_", "sr_", "pci", "acpi", "cpufreq", "intel", "amd_", "coretemp", "it87", "nct6", "k10temp", "lm", "can_", "ftdi", "cp210x", "ch341", "pl2303"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// mountsOver judges a mount that puts other files where a process's own or a program are.
func mountsOver(s *shell.Shell, args []shell.Field) {
	p := shell.ParseFlags(args, "otLUON", "options types source target label")
	options, _ := p.Value("o", "options")
	if len(p.Args) < 2 || !p.Has("B", "bind", "R", "rbind", "M", "move") && !shell.HasAny(","+options.Text+",", ",bind,", ",rbind,") {
		return
	}
	to := path.Clean(p.Arg(1))
	if process, ok := strings.CutPrefix(to, "/proc/"); ok && process != "" && (process[0] >= '0' && process[0] <= '9' || strings.HasPrefix(process, shell.Hole)) {
		s.Add(detector.ProtectionOff) // hides it
	}
	if dir := path.Dir(to); shell.OneOf(dir, "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin") {
		s.Add(detector.Persistence) // each use of the program runs another
	}
	s.WriteTo(shell.Field{Text: to, Unknown: p.Args[1].Unknown})
}

// isRootShell reports whether a command gives who types a shell of the administrator: what
// is typed next runs with all rights, and does not say so.
func isRootShell(name string, args []shell.Field) bool {
	short, long := "ugpChDRTUrt", "user group host prompt chdir chroot role type other-user close-from command-timeout"
	switch name {
	case "su":
		return isRootLogin(args)
	case "doas":
		short, long = "uCa", ""
	}
	words := shell.AfterOptions(args, short, long)
	p := shell.ParseFlags(args[:len(args)-len(words)], short, long)
	if user, ok := p.Value("u", "user"); p.Help || ok && !isRootUser(user.Text) {
		return false
	}
	if len(words) == 0 {
		return name == "run0" || name == "pkexec" || p.Has("i", "login", "s", "shell")
	}
	switch shell.BaseName(words[0].Text) {
	case "shell":
		return name == "machinectl"
	case "sh", "bash", "zsh", "dash", "ksh", "fish":
		return !slices.ContainsFunc(words[1:], func(a shell.Field) bool { return !shell.OneOf(a.Text, "-", "-i", "-l", "--login") })
	case "su":
		return isRootLogin(words[1:])
	}
	return false
}

// IsRoot reports whether what a program runs has the rights of the administrator here, if
// the program itself has them or not. In a container, on another host, and as another user,
// a shell is something else.
func IsRoot(name string, args []shell.Field, now bool) bool {
	short, long := "ugpChDRTUrt", "user group host prompt chdir chroot role type other-user close-from command-timeout"
	switch name {
	case "sudo", "sudo-rs", "pkexec", "run0":
	case "doas":
		short, long = "uCa", ""
	case "docker", "podman", "nerdctl", "crictl", "ctr", "docker-compose", "podman-compose", "kubectl", "oc", "k", "k3s", "k0s", "microk8s", "lxc", "lxc-attach", "incus", "machinectl", "systemd-nspawn", "chroot", "arch-chroot", "schroot", "ssh",
		"su", "runuser", "gosu", "su-exec", "setpriv", "setuidgid", "chpst", "bwrap", "toolbox", "distrobox", "minikube", "vagrant", "flatpak", "snap", "proot", "capsh", "ip":
		return false
	default:
		return now
	}
	p := shell.ParseFlags(args[:len(args)-len(shell.AfterOptions(args, short, long))], short, long)
	user, ok := p.Value("u", "user")
	return !p.Help && (!ok || isRootUser(user.Text))
}

// isRootUser reports whether an option names the administrator, also by the numbers that
// old versions of sudo took for that.
func isRootUser(user string) bool {
	return shell.OneOf(user, "root", "0", "#0", "#-1", "#4294967295")
}

// isRootLogin reports whether su with these arguments starts a shell of root.
func isRootLogin(args []shell.Field) bool {
	p := shell.ParseFlags(args, "cgGsTw", "command session-command group supp-group shell whitelist-environment")
	return !p.Help && !p.Has("c", "command", "session-command") && !slices.ContainsFunc(p.Args, func(a shell.Field) bool { return !shell.OneOf(a.Text, "-", "root") })
}

// containerHasHost reports whether a container gets what is the host's alone. The
// command in the container is not looked at.
func containerHasHost(args []shell.Field) bool {
	const long = "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpus cpuset-cpus device dns entrypoint env env-file expose gpus group-add health-cmd hostname ip ipc label label-file link " +
		"log-driver log-opt mac-address memory memory-swap mount name network network-alias pid pids-limit platform publish pull restart runtime security-opt shm-size stop-signal stop-timeout storage-opt sysctl tmpfs ulimit " +
		"user userns uts volume volume-driver volumes-from workdir host config context log-level file project-name"
	for at, a := range args {
		if shell.OneOf(a.Text, "run", "create", "exec") {
			args = args[at+1:]
			break
		}
		if at+1 == len(args) {
			return false
		}
	}
	args = args[:len(args)-len(shell.AfterOptions(args, "aceuhlmpvwH", long))]
	p := shell.ParseFlags(args, "aceuhlmpvwH", long)
	if slices.Contains(p.Names, "privileged") && !slices.ContainsFunc(p.Values, func(o shell.Option) bool { return o.Name == "privileged" && o.Value.Text == "false" }) {
		return true
	}
	for _, o := range p.Values {
		value := strings.TrimPrefix(o.Value.Text, "=") // -v=/:/host
		switch o.Name {
		case "pid":
			if value == "host" {
				return true
			}
		case "cap-add":
			switch strings.TrimPrefix(strings.ToUpper(value), "CAP_") {
			case "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH":
				return true
			}
		case "v", "volume":
			from, rest, ok := strings.Cut(value, ":")
			if ok && HostDirectory(from, strings.HasSuffix(rest, ":ro")) {
				return true
			}
		case "mount":
			from := ""
			for part := range strings.SplitSeq(value, ",") {
				if key, v, _ := strings.Cut(part, "="); key == "source" || key == "src" {
					from = v
				}
			}
			if HostDirectory(from, strings.Contains(value, "readonly") || strings.Contains(value, ",ro")) {
				return true
			}
		case "device":
			from, _, _ := strings.Cut(value, ":")
			if place.IsDevice(from) && shell.HasAny(from, "/dev/sd", "/dev/nvme", "/dev/vd", "/dev/xvd", "/dev/dm-", "/dev/mapper", "/dev/mem", "/dev/kmem", "/dev/port") {
				return true
			}
		}
	}
	return false
}

// HostDirectory reports whether access to a directory of the host gives control of the
// host. Monitoring reads /proc and the like, so those count only if they can be written.
func HostDirectory(name string, readOnly bool) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}
	switch name = path.Clean(name); name {
	case "/proc", "/sys", "/dev", "/boot", "/usr", "/var", "/lib", "/bin", "/sbin", "/usr/bin", "/var/lib", "/opt", "/home":
		return !readOnly
	case "/", "/etc", "/root", "/var/run", "/run", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/containerd", "/etc/kubernetes", "/var/spool/cron", "/root/.ssh":
		return true
	}
	return strings.HasSuffix(name, "/docker.sock") || strings.HasSuffix(name, "/containerd.sock") || strings.HasSuffix(name, "/crio.sock") ||
		strings.HasSuffix(name, "/podman.sock")
}

// podHasHost reports whether a command starts a pod that has its node.
func podHasHost(args []shell.Field) bool {
	p := shell.ParseFlags(args, "ns", "namespace context cluster kubeconfig user server token as as-group request-timeout")
	v := p.Arg(0)
	for i, a := range args {
		switch {
		case a.Text == "--":
			return false
		case v == "debug" && (strings.HasPrefix(a.Text, "node/") || strings.HasPrefix(a.Text, "nodes/") || a.Text == "--profile=sysadmin" ||
			a.Text == "sysadmin" && args[i-1].Text == "--profile"):
			return true
		case v == "run" && (a.Text == "--privileged" || a.Text == "--privileged=true"):
			return true
		case shell.OneOf(v, "run", "patch", "set") && ManifestHasHost(a.Text):
			return true
		}
	}
	return false
}

// ManifestHasHost reports whether a manifest of Kubernetes, in YAML or JSON, has a
// pod that has its node.
func ManifestHasHost(text string) bool {
	if !shell.HasAny(text, "privileged", "hostPID", "hostIPC", "hostPath", "SYS_ADMIN", "SYS_MODULE") {
		return false
	}
	text = spaceless.Replace(text)
	if shell.HasAny(text, "privileged:true", "hostPID:true", "hostIPC:true", "-SYS_ADMIN", "[SYS_ADMIN", ",SYS_ADMIN", "-SYS_MODULE", "[SYS_MODULE", ",SYS_MODULE") {
		return true
	}
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "hostPath:")
		if !ok {
			return false
		}
		rest = after
		const near = 256 // bytes, so that a text of such words takes no time for each
		_, value, ok := strings.Cut(after[:min(len(after), near)], "path:")
		if !ok {
			continue
		}
		if end := strings.IndexAny(value, "\n,}"); end >= 0 {
			value = value[:end]
		}
		if HostDirectory(value, false) {
			return true
		}
	}
}

// ManifestGrants reports whether a manifest of Kubernetes gives an account all rights, of
// the cluster or of all verbs, or everybody some.
func ManifestGrants(text string) bool {
	if !shell.HasAny(text, "cluster-admin", "system:masters", "system:anonymous", "system:unauthenticated", "verbs") {
		return false
	}
	text = spaceless.Replace(text)
	return shell.HasAny(text, "name:cluster-admin", "name:system:masters", "name:system:anonymous", "name:system:unauthenticated", "verbs:[*]", "verbs:\n-*")
}

var spaceless = strings.NewReplacer(" ", "", "\t", "", "\r", "", `\"`, "", `"`, "", "'", "", `\n`, "\n")
