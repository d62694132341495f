// Package infra says what commands do to infrastructure: clouds, clusters,
// containers, services, packages, accounts.
//
// A command is Teardown if it deletes something there, or stops or removes what
// others rely on. The functions take the arguments of one program, and the shell
// that calls it: containers and clusters run commands, which go back to it.
//
// The files, from the top: infra, container, host, windows, indirect, request,
// access.
package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// TearsDown applies the rules about infrastructure.
func TearsDown(s *shell.Shell, name string, args []shell.Field) bool {
	p := shell.ParseFlags(args, "", "")
	for _, a := range args {
		if shell.OneOf(a.Text, "--help", "-help", "-h") && (name != "nodetool" || a.Text != "-h") { // its -h is the host
			return true
		}
	}
	if scalesToZero(args) {
		s.Add(detector.Teardown)
	}
	if printsSecret(name, &p) {
		s.Add(detector.CredentialRead)
	}
	bad := false
	switch name {
	case "terraform", "tofu", "terragrunt", "opentofu", "cdktf":
		bad = terraform(&p, args)
	case "pulumi":
		bad = shell.OneOf(p.Arg(0), "destroy", "down", "dn") && !p.Has("preview-only") || p.Arg(0) == "stack" && p.Arg(1) == "rm" ||
			p.Arg(0) == "state" && p.Arg(1) == "delete"
	case "cdk", "sam", "serverless", "sls", "eksctl", "kops", "kind", "k3d", "minikube", "vercel", "netlify", "firebase", "wrangler", "doctl", "linode-cli", "hcloud", "scw", "ibmcloud",
		"oci", "railway", "render", "supabase", "amplify", "eb", "copilot", "sst", "civo", "vultr-cli", "gcloud", "az", "consul", "etcdctl", "vault", "nomad", "argocd", "flux", "istioctl",
		"rancher", "velero", "vagrant", "virsh", "VBoxManage", "vboxmanage", "multipass", "fly", "flyctl", "heroku", "aliyun", "tccli", "openstack", "ec2", "packer", "ansible-vault", "rabbitmqctl", "nix",
		"yc", "exo", "juju", "ctr", "buildah", "skopeo", "colima", "cloudflared", "kn", "neon", "turso", "pscale", "appwrite", "cf", "tkn", "odo", "rosa", "airflow", "dvc", "wp", "drush", "nmcli",
		"kubeadm", "k3s", "k0s", "microk8s", "lxc", "incus", "adb", "qm", "pct", "rpk", "rabbitmqadmin", "nats", "certbot", "snapper", "gluster", "ceph", "rbd", "rados", "xcrun", "zkCli.sh",
		"op", "doppler", "stripe", "fastly", "circleci", "algolia", "unleash", "flipt", "ldcli", "splunk", "deck", "temporal", "azcopy", "confluent", "wandb", "newrelic", "pd", "gitlab-runner", "nodetool":
		if name == "heroku" && strings.HasPrefix(p.Arg(0), "run") && len(p.Args) > 1 {
			s.Run(shell.Join(shell.AfterOptions(args[1:], "ast", "app size type remote env")), shell.Stream{})
			return true
		}
		bad = client(name, &p, args)
	case "restic", "borg", "borgbackup", "kopia", "tarsnap":
		bad = does(p.Args, "forget delete prune rdelete repo-delete compact remove") || name == "tarsnap" && p.Has("d")
		bad = bad && !p.Dry("n", "dry-run")
	case "helm", "helmfile", "helm3":
		bad = does(p.Args, "uninstall delete del un destroy") && !p.Dry("dry-run")
	case "aws":
		bad = aws(s, &p, args)
	case "java":
		for i, a := range args[:max(len(args)-1, 0)] {
			if jar := strings.TrimSuffix(shell.BaseName(args[i+1].Text), ".jar"); a.Text == "-jar" && jar != name {
				return TearsDown(s, jar, args[i+2:])
			}
		}
		return false
	case "salt":
		for i, a := range p.Args {
			if a.Text == "cmd.run" && i+1 < len(p.Args) {
				s.Run(p.Args[i+1].Code(), shell.Stream{})
			}
		}
	case "ansible":
		ansible(s, args)
	case "rustup", "pyenv", "nvm", "fnm", "asdf", "volta", "flox", "tlmgr", "rbenv", "nodenv":
		bad = does(p.Args, "uninstall remove")
	case "npm", "cargo", "gem", "twine", "pnpm", "yarn":
		bad = shell.OneOf(p.Arg(0), "unpublish", "yank") && !p.Dry("dry-run", "undo")
		bad = bad || shell.In(p.Arg(0), "team org owner token hook access") && shell.In(p.Arg(1), "rm remove destroy delete revoke")
		// What belongs to a project comes back with its lock file.
		if shell.OneOf(name, "gem", "cargo") || p.Has("g", "global") {
			bad = bad || shell.OneOf(p.Arg(0), "uninstall", "remove", "rm", "un") && name != "cargo" || name == "cargo" && p.Arg(0) == "uninstall"
		}
		if !bad {
			return false
		}
	case "prisma", "knex", "sequelize", "alembic", "flyway", "liquibase", "artisan", "typeorm", "drizzle-kit", "goose", "migrate", "dbmate", "atlas", "bin/rails":
		bad = deletesNoun(&p)
		all, force := name == "knex" && p.Has("all"), name == "prisma" && p.Has("force-reset")
		for _, a := range p.Args {
			bad = bad || force || shell.OneOf(a.Text, "reset", "db:drop", "migrate:fresh", "migrate:reset", "db:wipe", "clean", "dropAll", "drop", "drop-all", "schema:drop", "db:migrate:undo:all") || all && a.Text == "migrate:rollback" || name == "alembic" && a.Text == "base" && !p.Has("sql")
		}
	case "mix", "dotnet", "diesel", "sqlx", "hasura", "symfony", "console", "sequelize-cli":
		text := " " + shell.Join(p.Args) + " "
		for _, words := range [...]string{" ecto.drop ", " ecto.reset ", " database drop ", " database reset ", "database:drop ", "schema:drop ", " db:drop ", " migrate delete ", " db:migrate:undo:all "} {
			bad = bad || strings.Contains(text, words)
		}
	default:
		bad = unknown(name, &p, args) && !p.Dry("dry-run")
		if !bad {
			return false
		}
	}
	if bad {
		s.Add(detector.Teardown)
	}
	return true
}

func terraform(p *shell.Flags, args []shell.Field) bool {
	single := func(flag string) bool {
		for _, a := range args {
			if a.Text == flag || a.Text == "-"+flag || strings.HasPrefix(a.Text, flag+"=") && !strings.HasSuffix(a.Text, "=false") {
				return true
			}
		}
		return false
	}
	switch {
	case single("-help"), p.Any("plan", "show", "validate", "fmt", "output"):
	case p.Any("destroy", "destroy-all", "taint", "force-unlock"):
		return true
	case p.Any("apply"):
		return single("-destroy") || single("-auto-approve")
	case p.Any("state"):
		return p.Any("rm", "push") && !single("-dry-run")
	case p.Any("workspace"):
		return p.Any("delete")
	}
	return false
}

// client reports whether the client of a service removes something there. What it would do is
// among its operands, behind the nouns.
func client(name string, p *shell.Flags, args []shell.Field) bool {
	for _, n := range p.Names {
		if shell.OneOf(n, "dry-run", "dry_run", "dryrun", "check", "validate-only", "what-if", "preview") {
			return false
		}
	}
	for _, a := range args {
		if a.Text == "-purge" || name == "argocd" && a.Text == "--prune" || name == "heroku" && strings.HasSuffix(a.Text, "=0") ||
			name == "azcopy" && strings.HasPrefix(a.Text, "--delete-destination") && !strings.HasSuffix(a.Text, "=false") {
			return true
		}
	}
	for _, a := range p.Args {
		verb := a.Text[strings.LastIndexByte(a.Text, ':')+1:] // heroku apps:destroy
		if asks(verb) {
			return false // what follows is looked for
		}
		if removes(name, strings.ToLower(verb)) {
			return true
		}
	}
	return false
}

// removes reports whether a verb of a service's client, in lower case, removes something.
func removes(name, verb string) bool {
	switch verb {
	case "delete", "destroy", "remove", "rm", "del", "purge", "terminate", "undefine", "unregistervm", "uninstall", "kill", "reset", "force_reset", "undeploy", "unregister", "poweroff":
		return true
	}
	switch name + " " + verb {
	case "vault disable", "vault revoke", "vault seal", "railway down", "certbot revoke", "dvc gc", "splunk clean", "zkCli.sh deleteall", "xcrun erase", "rpk trim-prefix", "wp empty", "drush sql-drop",
		"nodetool decommission", "nodetool removenode", "nodetool assassinate", "nodetool clearsnapshot", "nodetool stopdaemon", "nodetool drain":
		return true
	}
	parts := strings.ReplaceAll(verb, "_", "-")
	for _, prefix := range [...]string{"delete-", "destroy-", "remove-", "terminate-", "purge-", "forget-", "clear-"} {
		if strings.HasPrefix(parts, prefix) {
			return true
		}
	}
	if at := strings.LastIndexByte(parts, '-'); at > 0 && shell.In(parts[at+1:], "delete destroy undefine") {
		return true // vol-delete
	}
	return shell.OneOf(name, "firebase", "netlify", "aliyun", "tccli") && strings.Contains(verb, "delete")
}

func aws(s *shell.Shell, p *shell.Flags, args []shell.Field) (bad bool) {
	q := shell.ParseFlags(args, "", "desired-count desired-capacity acl parameters change-batch profile region output query endpoint-url ca-bundle color cli-read-timeout cli-connect-timeout cli-binary-format")
	verb := q.Arg(1) // of the service
	for _, prefix := range [...]string{"delete-", "terminate-", "remove-", "deregister-", "purge-", "destroy-", "schedule-key-deletion", "revoke-", "stop-instances", "stop-db-", "reboot-", "release-address", "close-account", "disable-key", "unsubscribe"} {
		bad = bad || strings.HasPrefix(verb, prefix)
	}
	bad = bad || strings.Contains(verb, "-delete-") // admin-delete-user
	if p.Any("create-access-key", "create-login-profile", "update-login-profile") {
		s.Add(detector.Persistence)
	}
	attaches, sends, s3 := p.Any("attach-user-policy", "attach-group-policy", "attach-role-policy"), p.Any("send-command"), p.Any("s3")
	for _, a := range args {
		if attaches && (strings.HasSuffix(a.Text, "/AdministratorAccess") || strings.HasSuffix(a.Text, "/IAMFullAccess")) {
			s.Add(detector.Persistence)
		}
	}
	for _, o := range q.Values {
		bad = bad || shell.OneOf(o.Name, "desired-count", "desired-capacity") && o.Value.Text == "0"
		bad = bad || o.Name == "change-batch" && strings.Contains(o.Value.Text, `"DELETE"`)
		if o.Name == "acl" && o.Value.Text == "public-read-write" {
			s.Add(detector.PermissionsAll)
		}
		if _, list, ok := strings.Cut(o.Value.Text, "commands="); ok && sends {
			s.Run(strings.Trim(list, `[]"' `), shell.Stream{})
		}
	}
	for _, a := range p.Args {
		if s3 && (place.IsCredential(a.Text) || place.HasCredentials(a.Text) && strings.HasPrefix(p.Arg(len(p.Args)-1), "s3:")) {
			s.Add(detector.CredentialRead | detector.Exfiltration)
		}
	}
	if s3 {
		bad = bad || p.Any("rm", "rb") || p.Any("sync") && p.Has("delete")
		bad = bad && !p.Dry("dryrun")
	}
	return bad && p.Arg(len(p.Args)-1) != "help" && !p.Dry("dry-run", "generate-cli-skeleton")
}

func ansible(s *shell.Shell, args []shell.Field) {
	q := shell.ParseFlags(args, "maiuflecBPtTM", "module-name args inventory user forks limit extra-vars background poll tree timeout connection module-path become-user become-method")
	module, _ := q.Value("m", "module-name")
	text, ok := q.Value("a", "args")
	if ok && !q.Has("C", "check") && (module.Text == "" || shell.OneOf(module.Text, "shell", "command", "raw", "ansible.builtin.shell", "ansible.builtin.command")) {
		s.Run(text.Code(), shell.Stream{})
	} else if q.Has("C", "check") {
		return
	} else if ok && strings.Contains(text.Text, "state=absent") {
		s.Add(detector.ForcedDelete)
	} else if ok && strings.Contains(text.Text, "state=stopped") {
		s.Add(detector.Teardown)
	}
	if _, last, _ := strings.Cut(module.Text, "builtin."); module.Text == "reboot" || last == "reboot" {
		s.Add(detector.Shutdown)
	}
}

// unknown is client for a program that is not known.
func unknown(name string, p *shell.Flags, args []shell.Field) (bad bool) {
	control := strings.HasSuffix(name, "ctl")
	switch {
	case control, strings.HasSuffix(name, "-cli"), strings.HasSuffix(name, "-admin"):
		// The programs that control a service are named alike.
		first := p.Args[:min(3, len(p.Args))]
		bad = does(first, "delete destroy remove rm rmi purge terminate wipe uninstall") || control && shell.In(p.Arg(0), "stop reset")
		for _, a := range first {
			bad = bad || strings.HasPrefix(a.Text, "delete-")
		}
	case strings.HasPrefix(name, "kafka-"):
		bad = strings.Contains(name, "-delete-") && len(args) > 0
		for _, n := range p.Names {
			bad = bad || shell.In(n, "delete remove delete-config") || n == "reset-offsets" && p.Has("execute")
		}
	default:
		bad = deletesNoun(p) || strings.HasSuffix(p.Arg(0), "-delete") && len(p.Names) > 0
	}
	return bad || resetsDatabase(p) || strings.HasSuffix(name, "-uninstall.sh") && !p.Help
}

// resetsDatabase reports whether a program that is not known is called as those that migrate
// databases are, to make one anew: migrate fresh, db:drop.
func resetsDatabase(p *shell.Flags) bool {
	noun, verb, one := strings.Cut(p.Arg(0), ":")
	if !one {
		verb = p.Arg(1)
	}
	more := len(p.Args) > 2 || one && len(p.Args) > 1
	return shell.In(noun, "db database schema migrate migration migrations") && shell.In(verb, "drop reset fresh refresh wipe") &&
		(!more || len(p.Names) > 0)
}

// asks reports whether a verb of a service's client looks at things or makes some: what
// is behind it is a name.
func asks(verb string) bool {
	first, _, _ := strings.Cut(verb, "-")
	return shell.In(first, "list get describe show") || shell.In(verb, "ls read search help find info view status logs history explain create add new init generate")
}

// does reports whether one of the operands is one of the verbs.
func does(operands []shell.Field, verbs string) bool {
	for _, a := range operands {
		if shell.In(a.Text, verbs) {
			return true
		}
		if asks(a.Text) {
			break
		}
	}
	return false
}

// deletesNoun reports whether a program that is not known is called as clients of services
// are: with a noun or more, what is to be done with it, and its name or an option, as in
// "ldcli flags delete new-menu". Prose has a word behind the verb.
func deletesNoun(p *shell.Flags) bool {
	const most = 4 // operands up to the verb
	for i, a := range p.Args[:min(most, len(p.Args))] {
		at := strings.LastIndexByte(a.Text, ':') // apps:destroy
		if (i > 0 || at > 0) && shell.In(a.Text[at+1:], "delete destroy purge terminate undeploy") {
			return at > 0 || len(p.Names) > 0 || strings.ContainsAny(p.Arg(i+1), "0123456789-_:/.=@")
		}
		if a.Text == "" || asks(a.Text) || strings.Trim(a.Text, "abcdefghijklmnopqrstuvwxyz0123456789-_:") != "" {
			break
		}
	}
	return false
}

// printsSecret reports whether a client of a store for secrets prints one.
func printsSecret(name string, p *shell.Flags) bool {
	switch name {
	case "op":
		return p.Arg(0) == "read" || p.Arg(1) == "get" && shell.In(p.Arg(0), "item document")
	case "vault":
		return p.Arg(0) == "kv" && p.Arg(1) == "get" || p.Arg(0) == "read" && !strings.HasPrefix(p.Arg(len(p.Args)-1), "sys/")
	case "aws":
		return p.Any("secretsmanager") && p.Any("get-secret-value", "batch-get-secret-value") ||
			p.Any("ssm") && p.Any("get-parameter", "get-parameters", "get-parameters-by-path") && p.Has("with-decryption")
	case "gcloud":
		return p.Any("secrets") && p.Any("versions") && p.Any("access")
	case "heroku":
		return p.Arg(0) == "config" || p.Arg(0) == "config:get"
	case "vercel":
		return p.Arg(0) == "env" && p.Arg(1) == "pull"
	case "az":
		return p.Any("keyvault") && p.Any("secret") && p.Any("show", "download")
	}
	return false
}
