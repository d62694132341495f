package service

import (
	"strings"

	"auditproxy/internal/wordlist"
)

// hasWords reports whether the name of a tool has one of the words.
type hasWords func(list string) bool

// readsSecret reports whether a tool that reads gives out a secret, and not what is known
// of it.
func readsSecret(has hasWords) bool {
	return has("get read retrieve fetch show reveal view export decrypt download") &&
		has("secret secrets password passwords credential credentials kubeconfig") &&
		!has("scanning scan alert alerts metadata policy policies names rotation expiry expiration audit strength requirements status count health docs")
}

// namesSecret reports whether arguments name the secrets of a cluster as what is read.
func namesSecret(arguments []byte) (found bool) {
	pairs(arguments, 0, func(name, text string) {
		switch strings.ReplaceAll(name, "_", "") {
		case "kind", "resource", "resourcetype", "type", "resourcekind":
			found = found || strings.EqualFold(text, "secret") || strings.EqualFold(text, "secrets")
		}
	})
	return found
}

// makesAccess reports whether a tool makes an account of a database, a key with which one
// can be used, a password, or what the pipelines of a repository run with.
func makesAccess(has hasWords, database bool) bool {
	makes := has("create add set generate issue mint new update change reset upsert")
	return makes && (database && has("user users login grant") ||
		has("api access personal account pat") && has("key keys token tokens pat") && !has("update set") ||
		has("password passwords") && has("set change reset update") && !has("policy policies hint field") ||
		has("variable variables") && has("repo repository project group org organization actions pipeline ci workflow"))
}

// isNetwork reports whether a tool changes from where something can be reached.
func isNetwork(has hasWords) bool {
	return !has("egress outbound route routes") &&
		(has("firewall ingress inbound cidr nsg allowlist whitelist ipallowlist") || has("security") && has("group groups rule rules") ||
			has("access allowed trusted authorized") && has("list ip ips network networks"))
}

// opensToAll reports whether arguments let all addresses in, elsewhere than to a site on the
// web.
func opensToAll(arguments []byte) bool {
	all, not, web, other := false, false, false, false
	pairs(arguments, 0, func(name, text string) {
		switch {
		case text == "0.0.0.0/0" || text == "::/0":
			all = true
		case strings.Contains(name, "port"), strings.HasPrefix(name, "allow"):
			switch strings.TrimPrefix(strings.ToLower(text), "tcp:") {
			case "80", "443":
				web = true
			case "tcp", "", strings.ToLower(name):
			default:
				other = other || strings.ContainsAny(text, "0123456789")
			}
		}
		switch strings.ToLower(text) {
		case "egress", "outbound", "deny", "drop", "block", "reject":
			not = true
		}
	})
	return all && !not && (other || !web)
}

// weakens reports whether a tool turns off the second factor of an account, or what records
// or prevents.
func weakens(has hasWords) bool {
	return has("disable reset remove deactivate delete unenroll bypass") && has("mfa 2fa totp twofactor") ||
		has("disable stop deactivate off delete bypass uninstall") &&
			(has("cloudtrail guardduty antivirus edr auditing waf flowlogs") || has("audit") && has("log logs logging trail") || has("logging") ||
				has("firewall") && !has("rule rules policy group list"))
}

// languages are those that no shell runs.
const languages = "python python3 py ipython javascript js node nodejs deno bun typescript ts ruby rb perl php r julia java kotlin scala go golang rust c cpp csharp swift lua sql"

// Interpreter returns how a shell would run code of a language, or rather finds the calls
// that matter in it; "" for a shell's and for one that is not known.
func Interpreter(language string) string {
	language = strings.ToLower(language)
	if !wordlist.Has(languages, language) {
		return ""
	}
	if run := interpreterOf(func(list string) bool { return wordlist.Has(list, language) }); run != "" {
		return run
	}
	return "python3 -c"
}

// interpreterOf returns how a shell would run the code that a tool runs, "" for none. Code
// whose language the name does not say is read as Python's: the calls that matter are found
// by their names.
func interpreterOf(has hasWords) string {
	switch {
	case has("review lint format analyze analyse explain generate search sample samples docs complete scan check validate"):
		return "" // it reads code
	case has("browser page tab devtools puppeteer playwright chrome shell bash sql powershell"):
		return "" // a page has no files, and a shell is what else is looked for
	case has("javascript js node nodejs deno bun typescript ts"):
		return "node -e"
	case has("ruby"):
		return "ruby -e"
	case has("perl"):
		return "perl -e"
	case has("php"):
		return "php -r"
	case has("python python3 ipython jupyter notebook cell repl blender code interpreter"):
		return "python3 -c"
	}
	return ""
}
