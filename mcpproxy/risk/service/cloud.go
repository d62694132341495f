package service

import (
	"strings"

	"auditproxy/schemas/jsontext"
)

// operationOf returns the operation of a cloud, and its service, that a tool is named for,
// "" for none.
func operationOf(words []string) string {
	if len(words) < 3 || len(words) > 8 {
		return ""
	}
	switch words[0] {
	case "aws", "iam", "s3":
		words = words[1:]
	}
	name := strings.Join(words, "-")
	switch name {
	case "attach-user-policy", "attach-role-policy", "attach-group-policy", "put-user-policy", "put-role-policy", "put-group-policy", "create-access-key", "create-login-profile", "update-login-profile",
		"update-assume-role-policy", "add-user-to-group", "create-policy-version", "set-default-policy-version", "upload-ssh-public-key", "create-service-specific-credential", "add-role-to-instance-profile":
		return "iam " + name
	case "put-bucket-policy", "put-bucket-acl", "put-object-acl", "put-public-access-block", "delete-public-access-block":
		return "s3api " + name
	case "authorize-security-group-ingress", "modify-snapshot-attribute", "modify-image-attribute", "get-password-data":
		return "ec2 " + name
	}
	return ""
}

// An operation is one of a cloud's interface, with its parameters.
type operation struct {
	service, name string
	flags         []string
}

func (o *operation) add(name string, value []byte) {
	switch strings.ReplaceAll(name, "_", "") {
	case "service", "servicename", "client":
		o.service = text(value)
	case "operation", "operationname", "action", "api", "apiname", "method":
		o.name = kebab(text(value))
	case "parameters", "params", "arguments", "input", "kwargs", "args":
		for lit, inner := range jsontext.Lenient(value).Members() {
			o.flag(string(lit.Append(nil)), inner)
		}
	default:
		o.flag(name, value)
	}
}

func (o *operation) flag(name string, value []byte) {
	const most = 32
	if len(o.flags) > most || len(value) == 0 {
		return
	}
	v := text(value)
	if value[0] != '"' {
		v = string(value)
	}
	o.flags = append(o.flags, "--"+kebab(name), v)
}

// run gives the operation as a command of aws. named is that of the tool's name, with its
// service.
func (o *operation) run(named string, run func(words ...string)) {
	service, name := o.service, o.name
	if named != "" {
		service, name, _ = strings.Cut(named, " ")
	}
	if service == "" || name == "" {
		return
	}
	run(append([]string{"aws", strings.ToLower(service), name}, o.flags...)...)
}

// kebab returns a name as the commands of aws have it: attach_user_policy, PolicyArn.
func kebab(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' || c == ' ':
			c = '-'
		case 'A' <= c && c <= 'Z':
			if i > 0 && b[len(b)-1] != '-' && !('A' <= name[i-1] && name[i-1] <= 'Z') {
				b = append(b, '-')
			}
			c |= 0x20
		}
		b = append(b, c)
	}
	return string(b)
}
