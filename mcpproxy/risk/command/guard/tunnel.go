package guard

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
)

// opensTunnel reports whether a command lets others in from elsewhere: through a
// connection that goes out from here, which no firewall sees, or a terminal that is
// shared.
func opensTunnel(name string, args []shell.Field) bool {
	has := func(words ...string) bool { return hasWord(args, words...) }
	first := verb(args, 0)
	switch name {
	case "ssh", "autossh", "dbclient", "plink", "slogin":
		return forwardsBack(args)
	case "chisel":
		for _, a := range args {
			if first == "client" && strings.HasPrefix(a.Text, "R:") {
				return true
			}
		}
		return first == "server" && has("--reverse")
	case "wstunnel":
		return first == "client" && has("-R", "--remote-to-local")
	case "ngrok", "pgrok":
		return shell.OneOf(first, "tcp", "http", "tls", "start", "tunnel")
	case "cloudflared":
		return first == "tunnel" && !has("list", "info", "login", "delete", "cleanup") || first == "access" && has("ssh-config")
	case "frpc", "rathole", "ligolo", "ligolo-agent", "revsocks", "gs-netcat", "gsocket", "tmate", "ttyd", "gotty", "localtunnel", "pwncat", "pwncat-cs", "iodine", "dnscat", "dnscat2", "ptunnel", "rpivot", "sshx":
		return len(args) > 0 && !shell.In(first, "completion verify help") || name == "tmate" || name == "sshx"
	case "lt":
		return has("--port", "-p")
	case "bore":
		return first == "local"
	case "zrok":
		return first == "share"
	case "upterm", "devtunnel":
		return first == "host"
	case "code", "code-insiders", "code-server":
		return first == "tunnel"
	case "tailscale":
		return first == "funnel" || shell.OneOf(first, "up", "set") && has("--ssh", "--ssh=true")
	case "gost":
		for _, a := range args {
			if strings.Contains(a.Text, "rtcp://") || strings.Contains(a.Text, "rudp://") {
				return true
			}
		}
	case "kubectl", "oc", "k", "kubecolor":
		return has("proxy", "port-forward") && has("--address=0.0.0.0", "0.0.0.0", "--address=::", "--accept-hosts=.*", "--accept-hosts=^.*$")
	case "netsh":
		return has("portproxy") && has("add")
	}
	return false
}

// forwardsBack reports whether ssh lets the other host connect to here.
func forwardsBack(args []shell.Field) bool {
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		if len(a) < 2 || a[0] != '-' {
			return false // the host; what follows is a command
		}
		if shell.OneOf(a, "-pw", "-pwfile", "-hostkey", "-sshlog", "-proxycmd", "-sercfg") { // of plink
			i++
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte("BbcDEeFIiJLlMmOopQRSWw", a[j]) < 0 ||
				a[j] == 'M' && j+1 == len(a) && i+1 < len(args) && strings.Trim(args[i+1].Text, "0123456789") != "" {
				continue
			}
			value := a[j+1:]
			if value == "" && i+1 < len(args) {
				i++
				value = args[i].Text
			}
			// A socket of an agent is forwarded by its path.
			if a[j] == 'R' && !strings.HasPrefix(value, "/") || a[j] == 'o' && strings.HasPrefix(strings.ToLower(value), "remoteforward") {
				return true
			}
			break
		}
	}
	return false
}
