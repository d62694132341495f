package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

const containerValues = "env env-file user workdir name volume network publish entrypoint label mount host config context platform memory cpus hostname file project-name project-directory profile index detach-keys pull restart cap-add device ip log-driver shm-size tmpfs ulimit add-host dns gpus ipc pid security-opt signal filter"

// Docker judges docker, podman and compose.
func Docker(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	args = shell.AfterOptions(args, "HlcfpD", containerValues)
	if len(args) > 1 && args[0].Text == "unshare" && name == "podman" {
		s.Command(shell.AfterOptions(args[1:], "", ""), in)
		return
	}
	compose := strings.HasSuffix(name, "compose")
	if len(args) > 0 && args[0].Text == "compose" {
		compose = true
		rest := shell.AfterOptions(args[1:], "fp", containerValues)
		for _, a := range args[1 : len(args)-len(rest)] {
			if a.Text == "--dry-run" {
				return
			}
		}
		args = rest
	}
	if len(args) == 0 {
		return
	}
	verb := args[0].Text
	group := ""
	if !compose && shell.OneOf(verb, "container", "image", "volume", "network", "system", "builder", "buildx", "context", "stack", "service", "swarm", "node", "secret", "config", "plugin", "pod", "manifest", "trust", "machine") && len(args) > 1 {
		group, args = verb, args[1:]
		verb = args[0].Text
	}
	if args[0].Unknown {
		s.Add(detector.Opaque)
		return
	}
	args = args[1:]
	values := "eutvns"
	if shell.OneOf(verb, "rm", "rmi", "remove", "prune", "delete", "down") {
		values = "t" // -v removes volumes
	}
	p := shell.ParseFlags(args, values, containerValues)
	for _, n := range p.Names {
		if n == "help" && !shell.OneOf(verb, "exec", "run") {
			return
		}
	}
	if verb == "scale" && scalesToZero(append([]shell.Field{{Text: verb}}, args...)) {
		s.Add(detector.Teardown)
	}
	switch verb {
	case "exec", "run", "create":
		rest := shell.AfterOptions(args, "euwvpnlhmcG", containerValues)
		if verb != "exec" {
			for i, a := range args[:len(args)-len(rest)] {
				if a.Text == "--entrypoint" && i+1 < len(args) && trigger.Runs(shell.BaseName(args[i+1].Text)) && len(rest) > 0 {
					s.Command(append([]shell.Field{args[i+1]}, rest[1:]...), in)
					return
				}
				if cmd, ok := strings.CutPrefix(a.Text, "--entrypoint="); ok && trigger.Runs(shell.BaseName(cmd)) && len(rest) > 0 {
					s.Command(append([]shell.Field{{Text: cmd}}, rest[1:]...), in)
					return
				}
			}
		}
		if len(rest) > 1 {
			if rest = rest[1:]; rest[0].Text == "--" {
				rest = rest[1:]
			}
			s.Command(rest, in)
		}
	case "rm", "rmi", "remove", "prune", "delete":
		if compose || !p.Dry("dry-run") && (len(p.Args) > 0 || verb == "prune" || group == "machine" || p.Has("a", "all", "prune")) {
			if compose && p.Dry("dry-run") {
				return
			}
			s.Add(detector.Teardown)
		}
	case "kill":
		if sig, ok := p.Value("s", "signal"); !ok || strings.Contains(strings.ToUpper(sig.Text), "KILL") || sig.Text == "9" {
			s.Add(detector.Kill)
		}
	case "down":
		for _, a := range args {
			if compose && shell.In(strings.TrimSuffix(a.Text, "=true"), "-v --volumes --rmi --remove-orphans") && !p.Dry("dry-run") ||
				strings.HasPrefix(a.Text, "--rmi=") {
				s.Add(detector.Teardown)
			}
		}
	case "leave", "reset":
		if group == "swarm" || group == "system" || group == "machine" {
			s.Add(detector.Teardown)
		}
	case "system", "volume":
	}
}

// Kubectl judges kubectl and oc.
func Kubectl(s *shell.Shell, args []shell.Field, in shell.Stream) {
	const long = "namespace context cluster kubeconfig user server token as container output selector filename field-selector patch type replicas timeout grace-period image"
	rest := shell.AfterOptions(args, "nsc", long)
	if len(rest) == 0 {
		return
	}
	if rest[0].Unknown {
		s.Add(detector.Opaque)
		return
	}
	if len(rest) > 1 && rest[0].Text == "adm" {
		rest = rest[1:]
	}
	verb := rest[0].Text
	p := shell.ParseFlags(rest[1:], "nclofp", long)
	for _, n := range p.Names {
		if (n == "help" || n == "h") && verb != "exec" {
			return
		}
	}
	dry := false
	for _, n := range p.Names {
		if n != "dry-run" {
			continue
		}
		dry = true
		if v, ok := p.Value("dry-run"); ok && shell.OneOf(v.Text, "none", "false") {
			dry = false
		}
	}
	switch verb {
	case "exec", "run", "debug", "rsh":
		for i, a := range rest {
			if a.Text == "--" {
				s.Command(rest[i+1:], in)
				return
			}
		}
		cmd := shell.AfterOptions(rest[1:], "ncf", long+" image")
		if len(cmd) > 1 {
			s.Command(shell.AfterOptions(cmd[1:], "nc", long), in)
		}
	case "delete":
		if !dry {
			s.Add(detector.Teardown)
		}
	case "drain", "evict":
		if !dry {
			s.Add(detector.Teardown)
		}
	case "replace":
		if p.Has("force") && !dry {
			s.Add(detector.Teardown)
		}
	case "apply":
		if p.Has("prune") && !dry {
			for _, n := range p.Names {
				if n == "prune" {
					s.Add(detector.Teardown)
				}
			}
		}
	case "scale":
		if n, ok := p.Value("replicas"); ok && n.Text == "0" && !dry {
			s.Add(detector.Teardown)
		}
	case "patch":
		if patch, ok := p.Value("p", "patch"); ok && !dry && hasNoReplicas(patch.Text) {
			s.Add(detector.Teardown)
		}
	case "get":
		if _, ok := p.Value("o", "output"); ok && len(p.Args) > 0 && (strings.HasPrefix(p.Args[0].Text, "secret")) {
			s.Add(detector.CredentialRead)
		}
	}
}

// hasNoReplicas reports whether a patch, in JSON or YAML, sets the replicas to 0.
func hasNoReplicas(patch string) bool {
	_, value, ok := strings.Cut(patch, "replicas")
	value = strings.TrimLeft(value, "\"' :,valuer") // also of a patch with "path" and "value"
	return ok && strings.HasPrefix(value, "0") && (len(value) == 1 || value[1] < '0' || value[1] > '9')
}

// scalesToZero reports whether a command leaves a service with no instance. Clients of clouds
// and clusters name the number alike.
func scalesToZero(args []shell.Field) bool {
	scales := false
	for i, a := range args {
		name, value, _ := strings.Cut(a.Text, "=")
		isOption := strings.HasPrefix(name, "-")
		switch {
		case !isOption && !scales:
			scales = shell.HasAny(name, "scale", "scaling", "resize", "set-desired-capacity")
			continue
		case !isOption && shell.OneOf(name, "list", "show", "describe", "get", "help"):
			return false
		case !isOption && value != "0" && (name != "count" || i+1 == len(args) || args[i+1].Text != "0"): // web=0, count 0
			continue
		case isOption && !shell.OneOf(strings.TrimLeft(name, "-"), "max-size", "desired-capacity", "new-capacity", "capacity", "node-count", "num-nodes", "nodes", "size", "replicas", "count", "max-instances", "max", "instance-count", "number-of-workers"):
			continue
		case isOption && value == "" && i+1 < len(args):
			value = args[i+1].Text
		}
		if scales && (!isOption || value == "0") {
			return true
		}
	}
	return false
}
