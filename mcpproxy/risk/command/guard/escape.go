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
		bad = hasAny(text, "security.privileged=true", "security.privileged true", "raw.lxc") || strings.Contains(text, " disk ") && hasAny(text+" ", "source=/ ", "source=/root", "source=/etc")
	case "nsenter":
		p := shell.ParseFlags(args, "tSGrwW", "target setuid setgid root wd wdns")
		target, ok := p.Value("t", "target")
		bad = ok && target.Text == "1"
		for _, a := range args {
			bad = bad || strings.Contains(a.Text, "/proc/1/ns")
		}
	case "chroot":
		root := path.Clean(verb(args, 0))
		bad = strings.HasSuffix(root, "/proc/1/root") || shell.OneOf(root, "/host", "/hostfs", "/host_root", "/host-root", "/rootfs", "/mnt/host", "/mnt/root")
	case "insmod":
		bad = verb(args, 0) != ""
	case "modprobe":
		p := shell.ParseFlags(args, "dCS", "dirname config set-version")
		bad = len(p.Args) > 0 && (p.Has("d", "dirname", "f", "force", "force-vermagic", "force-modversion") || strings.Contains(p.Arg(0), "/"))
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
	if user, ok := p.Value("u", "user"); p.Help || ok && user.Text != "root" && user.Text != "0" {
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
			if place.IsDevice(from) && hasAny(from, "/dev/sd", "/dev/nvme", "/dev/vd", "/dev/xvd", "/dev/dm-", "/dev/mapper", "/dev/mem", "/dev/kmem", "/dev/port") {
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
	return strings.HasSuffix(name, "/docker.sock") || strings.HasSuffix(name, "/containerd.sock") || strings.HasSuffix(name, "/crio.sock") || strings.HasSuffix(name, "/podman.sock")
}

// podHasHost reports whether a command starts a pod that has its node.
func podHasHost(args []shell.Field) bool {
	v := verb(args, 0)
	for i, a := range args {
		switch {
		case a.Text == "--":
			return false
		case v == "debug" && (strings.HasPrefix(a.Text, "node/") || strings.HasPrefix(a.Text, "nodes/") || a.Text == "--profile=sysadmin" || a.Text == "sysadmin" && args[i-1].Text == "--profile"):
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
	if !hasAny(text, "privileged", "hostPID", "hostIPC", "hostPath", "SYS_ADMIN", "SYS_MODULE") {
		return false
	}
	text = spaceless.Replace(text)
	if hasAny(text, "privileged:true", "hostPID:true", "hostIPC:true", "-SYS_ADMIN", "[SYS_ADMIN", ",SYS_ADMIN", "-SYS_MODULE", "[SYS_MODULE", ",SYS_MODULE") {
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
	if !hasAny(text, "cluster-admin", "system:masters", "system:anonymous", "system:unauthenticated", "verbs") {
		return false
	}
	text = spaceless.Replace(text)
	return hasAny(text, "name:cluster-admin", "name:system:masters", "name:system:anonymous", "name:system:unauthenticated", "verbs:[*]", "verbs:\n-*")
}

var spaceless = strings.NewReplacer(" ", "", "\t", "", "\r", "", `\"`, "", `"`, "", "'", "", `\n`, "\n")
