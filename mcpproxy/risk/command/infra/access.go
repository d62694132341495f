package infra

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/guard"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// GivesAccess judges what gives a person or an account rights in a cloud, a cluster or
// a forge, or everybody.
func GivesAccess(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	for i, a := range args {
		if shell.OneOf(a.Text, "--help", "-h") || a.Text == "help" && name == "aws" && i+1 == len(args) ||
			strings.HasPrefix(a.Text, "--dry-run") && a.Text != "--dry-run=none" {
			return
		}
	}
	switch name {
	case "aws":
		awsAccess(s, args)
	case "gcloud", "gsutil":
		googleAccess(s, args)
	case "az":
		azureAccess(s, args)
	case "kubectl", "oc", "k", "kubecolor":
		if text := shell.Join(args); strings.Contains(text, "config view") && strings.Contains(text, "--raw") &&
			!slices.ContainsFunc(args, isPublicField) {
			s.Add(detector.CredentialRead)
		}
		clusterAccess(s, args, in)
	case "gh", "glab":
		forgeAccess(s, args)
	case "npm":
		if text := shell.Join(args); strings.Contains(text, "pkg set scripts.") &&
			(strings.Contains(text, "install=") || strings.Contains(text, "prepare=") || strings.Contains(text, "publish=")) {
			s.Add(detector.Persistence) // runs at each installation
		}
	}
}

// isPublicField reports whether kubectl prints one field of a configuration that is no secret.
func isPublicField(a shell.Field) bool {
	_, path, ok := strings.Cut(a.Text, "jsonpath=")
	return ok && strings.Count(path, "{") == 1 && !strings.ContainsAny(path, " ,*") &&
		shell.In(strings.TrimRight(path[strings.LastIndexByte(path, '.')+1:], "}"), "certificate-authority-data certificate-authority client-certificate-data client-certificate server")
}

func awsAccess(s *shell.Shell, args []shell.Field) {
	p := shell.ParseFlags(args, "", "acl policy cidr port group-names user-ids user-data attribute operation-type principal protocol ip-permissions profile region output query")
	service, verb := p.Arg(0), p.Arg(1)
	value := func(name string) string {
		for _, o := range p.Values {
			if o.Name == name {
				return o.Value.Text
			}
		}
		return ""
	}
	switch service {
	case "iam":
		switch verb {
		case "create-user", "put-user-policy", "put-role-policy", "put-group-policy", "update-assume-role-policy", "add-user-to-group", "create-policy-version", "set-default-policy-version", "upload-ssh-public-key",
			"create-service-specific-credential", "update-access-key", "add-role-to-instance-profile", "upload-signing-certificate", "create-open-id-connect-provider", "create-saml-provider", "delete-user-permissions-boundary", "delete-role-permissions-boundary":
			s.Add(detector.Persistence)
		}
	case "ec2-instance-connect":
		if strings.HasPrefix(verb, "send-") {
			s.Add(detector.Persistence)
		}
	case "ec2":
		switch verb {
		case "get-password-data":
			s.Add(detector.CredentialRead)
		case "authorize-security-group-ingress":
			open := shell.OneOf(value("cidr"), "0.0.0.0/0", "::/0") || strings.Contains(shell.Join(args), "0.0.0.0/0")
			if open && !shell.OneOf(value("port"), "80", "443") {
				s.Add(detector.PermissionsAll)
			}
		case "modify-snapshot-attribute", "modify-image-attribute":
			if text := shell.Join(args); strings.Contains(text, "--user-ids") || strings.Contains(text, "Add=") {
				s.Add(detector.Exfiltration)
			} else if strings.Contains(text, "--group-names") {
				s.Add(detector.PermissionsAll)
			}
		case "modify-instance-attribute":
			if p.Has("user-data") {
				s.Add(detector.Persistence)
			}
		}
	case "s3api", "s3":
		if acl := value("acl"); shell.OneOf(acl, "public-read", "public-read-write", "authenticated-read") && strings.HasSuffix(verb, "-acl") {
			s.Add(detector.PermissionsAll)
		}
		if verb == "put-public-access-block" && strings.Contains(strings.ToLower(shell.Join(args)), "false") {
			s.Add(detector.PermissionsAll)
		}
		if policy := spaceless(value("policy")); verb == "put-bucket-policy" && (strings.Contains(policy, `"Allow"`) || !strings.Contains(policy, `"Deny"`)) &&
			(strings.Contains(policy, `"Principal":"*"`) || strings.Contains(policy, `"AWS":"*"`)) {
			s.Add(detector.PermissionsAll)
		}
	case "organizations":
		if shell.OneOf(verb, "leave-organization", "detach-policy") {
			s.Add(detector.ProtectionOff)
		}
	case "rolesanywhere":
		if verb == "create-trust-anchor" {
			s.Add(detector.Persistence)
		}
	case "rds":
		snapshot := strings.HasPrefix(verb, "modify-db-") && strings.HasSuffix(verb, "snapshot-attribute")
		for i, a := range args {
			switch {
			case snapshot && a.Text == "--values-to-add":
				if s.Add(detector.Exfiltration); i+1 < len(args) && args[i+1].Text == "all" {
					s.Add(detector.PermissionsAll)
				}
			case a.Text == "--publicly-accessible":
				s.Add(detector.PermissionsAll)
			}
		}
	case "lambda", "sns", "sqs", "ecr", "kms":
		if value("principal") == "*" {
			s.Add(detector.PermissionsAll)
		}
	}
}

func spaceless(text string) string { return strings.ReplaceAll(text, " ", "") }

func googleAccess(s *shell.Shell, args []shell.Field) {
	text := " " + shell.Join(args) + " "
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	lower := strings.ToLower(text)
	everybody := strings.Contains(lower, "allusers") || strings.Contains(lower, "allauthenticatedusers")
	switch {
	case has("add-iam-policy-binding", "set-iam-policy", " iam ch ", " acl ch ", " acl set ", " defacl "):
		if everybody {
			s.Add(detector.PermissionsAll)
		}
		if has("roles/owner", "roles/editor", "admin", "Admin", "serviceAccountTokenCreator", "serviceAccountUser", "set-iam-policy") {
			s.Add(detector.Persistence)
		}
	case has(" service-accounts keys create "), has(" add-metadata ") && has("ssh-keys", "startup-script"), has(" os-login ssh-keys add "):
		s.Add(detector.Persistence)
	case has(" --no-public-access-prevention "), has(" sql ") && has("authorized-networks=0.0.0.0/0"):
		s.Add(detector.PermissionsAll)
	case has(" firewall-rules create ", " firewall-rules update "):
		if has("0.0.0.0/0") && !has("tcp:80 ", "tcp:443 ", "tcp:80,tcp:443 ") {
			s.Add(detector.PermissionsAll)
		}
	}
}

func azureAccess(s *shell.Shell, args []shell.Field) {
	p := shell.ParseFlags(args, "gnu", "role scripts access source-address-prefixes destination-port-ranges assignee scope name")
	text := shell.Join(p.Args)
	role, _ := p.Value("role")
	switch {
	case strings.HasPrefix(text, "role assignment create"):
		if shell.OneOf(strings.ToLower(role.Text), "owner", "contributor", "user access administrator") || strings.Contains(role.Text, "Administrator") {
			s.Add(detector.Persistence)
		}
	case strings.HasPrefix(text, "ad sp create-for-rbac"), strings.HasPrefix(text, "ad app credential reset"), strings.HasPrefix(text, "ad sp credential reset"), strings.HasPrefix(text, "vm user update"),
		strings.HasPrefix(text, "keyvault set-policy"), strings.HasPrefix(text, "ad app permission admin-consent"), strings.HasPrefix(text, "ad user create"), strings.HasPrefix(text, "ad group member add"):
		s.Add(detector.Persistence)
	case strings.HasPrefix(text, "vm run-command invoke"):
		if script, ok := p.Value("scripts"); ok {
			s.RunField(script, shell.Stream{})
		}
	case strings.HasPrefix(text, "storage container set-permission"), strings.HasPrefix(text, "storage account update"):
		if joined := shell.Join(args); strings.Contains(joined, "public-access blob") || strings.Contains(joined, "public-access container") ||
			strings.Contains(joined, "allow-blob-public-access true") {
			s.Add(detector.PermissionsAll)
		}
	case strings.HasPrefix(text, "network nsg rule create"):
		from, limited := p.Value("source-address-prefixes")
		ports, _ := p.Value("destination-port-ranges")
		access, _ := p.Value("access")
		if access.Text != "Deny" && (!limited || shell.OneOf(from.Text, "*", "Internet", "0.0.0.0/0")) && !shell.OneOf(ports.Text, "80", "443") {
			s.Add(detector.PermissionsAll)
		}
	}
}

func clusterAccess(s *shell.Shell, args []shell.Field, in shell.Stream) {
	p := shell.ParseFlags(args, "nfpcl", "namespace filename patch type context user group serviceaccount clusterrole role kubeconfig container")
	verb, kind := p.Arg(0), p.Arg(1)
	powerful, everybody := false, false
	for _, o := range p.Values {
		switch o.Name {
		case "clusterrole", "role":
			powerful = powerful || shell.OneOf(o.Value.Text, "cluster-admin", "admin", "system:masters")
		case "group", "user":
			powerful = powerful || o.Value.Text == "system:masters"
			everybody = everybody || shell.OneOf(o.Value.Text, "system:anonymous", "system:unauthenticated", "system:authenticated", "system:serviceaccounts")
		}
	}
	switch verb {
	case "create":
		switch kind {
		case "clusterrolebinding", "rolebinding":
			if powerful {
				s.Add(detector.Persistence)
			}
			if everybody {
				s.Add(detector.PermissionsAll)
			}
		case "clusterrole", "role":
			for _, a := range args {
				if shell.OneOf(a.Text, "--verb=*", "--resource=*", "*") {
					s.Add(detector.Persistence)
				}
			}
		case "token":
			s.Add(detector.CredentialRead)
		}
	case "edit":
		if strings.HasPrefix(kind, "clusterrole") || strings.HasPrefix(kind, "rolebinding") {
			s.Add(detector.Persistence)
		}
	case "label":
		for _, a := range p.Args {
			if a.Text == "pod-security.kubernetes.io/enforce=privileged" || a.Text == "pod-security.kubernetes.io/enforce-" {
				s.Add(detector.ProtectionOff)
			}
		}
	case "patch":
		if patch, _ := p.Value("p", "patch"); strings.Contains(kind, "role") && (strings.Contains(patch.Text, `"*"`) || strings.Contains(patch.Text, "subjects")) {
			s.Add(detector.Persistence)
		}
	case "adm":
		if kind == "policy" && strings.HasPrefix(p.Arg(2), "add-") && p.Any("cluster-admin", "admin", "privileged", "anyuid") {
			s.Add(detector.Persistence)
		}
	case "certificate":
		if kind == "approve" {
			s.Add(detector.Persistence)
		}
	case "cp":
		for _, a := range p.Args[1:] {
			_, file, _ := strings.Cut(a.Text, ":")
			if place.IsCredential(file) || place.IsCredential(a.Text) {
				s.Add(detector.CredentialRead)
			}
		}
	case "apply", "replace":
		verb = "create"
	}
	if verb == "create" && in.Kind == shell.Text && guard.ManifestHasHost(in.Text) {
		s.Add(detector.PrivilegeEscalation)
	}
	if verb == "create" && in.Kind == shell.Text && guard.ManifestGrants(in.Text) {
		s.Add(detector.Persistence)
	}
}

func forgeAccess(s *shell.Shell, args []shell.Field) {
	p := shell.ParseFlags(args, "XtbFfHR", "method title body field raw-field header repo visibility")
	method, _ := p.Value("X", "method")
	visibility, _ := p.Value("visibility")
	if strings.EqualFold(method.Text, "DELETE") || shell.OneOf(p.Arg(1), "delete", "remove", "archive") {
		s.Add(detector.Teardown)
	}
	switch first, second := p.Arg(0), p.Arg(1); {
	case first == "ssh-key" && second == "add", first == "repo" && second == "deploy-key" && p.Arg(2) == "add", first == "deploy-key" && second == "add":
		s.Add(detector.Persistence)
	case first == "api" && (shell.OneOf(strings.ToUpper(method.Text), "PUT", "POST", "PATCH") || len(p.Values) > 0 && method.Text == ""):
		for _, part := range [...]string{"/collaborators", "/keys", "/hooks", "/memberships", "/members", "/invitations", "/secrets/", "/variables"} {
			if strings.Contains(second, part) {
				s.Add(detector.Persistence)
			}
		}
	case shell.OneOf(first, "secret", "variable") && shell.OneOf(second, "set", "update", "create", "import"):
		s.Add(detector.Persistence) // what its pipelines run with
	case first == "repo" && second == "edit" && visibility.Text == "public":
		s.Add(detector.PermissionsAll)
	case first == "gist" && second == "create":
		if p.Has("p", "public") {
			s.Add(detector.Exfiltration)
		}
		for _, a := range p.Args[2:] {
			if place.IsCredential(a.Text) || place.IsCredentialDir(a.Text) {
				s.Add(detector.CredentialRead | detector.Exfiltration)
			}
		}
	case first == "pr" && second == "close" && p.Has("d", "delete-branch"):
		s.Add(detector.GitHistory)
	case first == "auth" && second == "token":
		s.Add(detector.CredentialRead)
	}
}
