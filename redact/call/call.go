// Package call finds the secrets among the arguments of a function in a text, by the
// function's name: connect(host, user, "SECRET").
package call

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
)

// calls are functions, by the last part of their names, with the number of the
// argument that is a secret: those that open a connection, and those that hash
// or sign.
var calls = map[string]callRule{
	"PDO": {argument: 2}, "mysqli": {argument: 2}, "mysqli_connect": {argument: 2}, "mysqli_real_connect": {argument: 3}, "real_connect": {argument: 2},
	"mysql_connect": {argument: 2}, "mysql_pconnect": {argument: 2}, "odbc_connect": {argument: 2}, "odbc_pconnect": {argument: 2},
	"oci_connect": {argument: 1}, "oci_pconnect": {argument: 1}, "oci_new_connect": {argument: 1}, "db2_connect": {argument: 2}, "ibase_connect": {argument: 2},
	"ftp_login": {argument: 2}, "ldap_bind": {argument: 2}, "imap_open": {argument: 2}, "ssh2_auth_password": {argument: 2}, "getConnection": {argument: 2},
	"Sequelize": {argument: 2}, "FTP": {argument: 2}, "FTP_TLS": {argument: 2}, "createUser": {argument: 1}, "create_user": {argument: 2}, "create_superuser": {argument: 2},
	"basic_auth": {argument: 1}, "basicAuth": {argument: 1}, "BasicAuth": {argument: 1}, "PlainAuth": {argument: 2}, "CRAMMD5Auth": {argument: 1},
	"NewStaticCredentials": {argument: 1}, "NewStaticCredentialsProvider": {argument: 1}, "PasswordAuthentication": {argument: 1},
	"BasicAWSCredentials": {argument: 1}, "ClientSecretCredential": {argument: 2}, "set_password": {argument: 2}, "setPassword": {argument: 2},
	"createHmac": {argument: 1}, "hash_hmac": {argument: 2}, "Fernet": {argument: 0}, "createCipheriv": {argument: 1}, "createDecipheriv": {argument: 1}, "SecretKeySpec": {argument: 0}, "simple_bind_s": {argument: 1}, "simple_bind": {argument: 1}, "crypt": {argument: 0}, "hashpw": {argument: 0},
	"generate_password_hash": {argument: 0}, "password_hash": {argument: 0}, "password_verify": {argument: 0}, "check_password_hash": {argument: 1},
	"Github": {argument: 0}, "Stripe": {argument: 0}, "WebClient": {argument: 0}, "Octokit": {argument: 0}, "Telegraf": {argument: 0}, "TeleBot": {argument: 0},
	"pgp_sym_encrypt": {argument: 1}, "pgp_sym_decrypt": {argument: 1}, "aes_encrypt": {argument: 1}, "aes_decrypt": {argument: 1}, "AES_ENCRYPT": {argument: 1}, "AES_DECRYPT": {argument: 1}, // and the table functions of ClickHouse:
	"s3": {argument: 2}, "S3": {argument: 2}, "s3Cluster": {argument: 3}, "gcs": {argument: 2}, "mysql": {argument: 4}, "MySQL": {argument: 4}, "postgresql": {argument: 4}, "PostgreSQL": {argument: 4},
	"mongodb": {argument: 4}, "MongoDB": {argument: 4}, "remote": {argument: 4}, "remoteSecure": {argument: 4}, "azureBlobStorage": {argument: 4},

	"connect": {argument: 2}, // of most databases
	"sign":    {1, "jwt"}, "encode": {1, "jwt"}, "verify": {1, "jwt"}, "decode": {1, "jwt"},
	"new": {0, "hmac"}, "basic": {1, "credentials"}, "create": {1, "credentials"}, "hash": {0, "bcrypt"}, "compare": {0, "bcrypt"},
	"begin": {1, "wifi"}, "run": {0, "bot"}, "login": {0, "client"}, "start": {0, "bot"}, "Session": {1, "boto3"},

	// Those that set a variable have its name before the secret.
	"SetEnvironmentVariable": {nameFirst, ""}, "set_config": {nameFirst, ""}, "setenv": {nameFirst, ""}, "Setenv": {nameFirst, ""}, "putenv": {nameFirst, ""},
}

// A callRule is where a call has its secret.
type callRule struct {
	argument int
	of       string // what the text before its name ends in, "" for anything
}

const (
	nameFirst    = -1
	maxArguments = 6
	maxArgument  = 256 // bytes of a string among them
	maxOther     = 64  // bytes of another value among them
)

// typers are functions that fill in the field of a form that was found before.
var typers = map[string]bool{"fill": true, "type": true, "send_keys": true, "sendKeys": true, "setValue": true, "typeText": true, "fill_in": true, "press_sequentially": true, "pressSequentially": true}

// callStarts distinguishes most other functions from these, as wordStarts does.
var callStarts = func() *lex.WordSet {
	var set lex.WordSet
	for name := range calls {
		set.Add(name)
	}
	for name := range typers {
		set.Add(name)
	}
	return &set
}()

// Secret finds the secret among the arguments of the call in r.Text whose parenthesis
// is at open, behind a name that starts at first. Text before from has been decided. f
// is scratch memory.
func Secret(r *literal.Reader, f *names.Folded, from, first, open int) lex.Span {
	t := r.Text
	name := t[first:open]
	if !callStarts.Has(name) {
		return lex.Span{}
	}
	if typers[lex.View(name)] {
		return typedIn(r, f, from, first, open)
	}
	rule, ok := calls[lex.View(name)]
	if !ok || rule.of != "" && !calledOn(t, first, rule.of) {
		return lex.Span{}
	}
	var arguments [maxArguments]lex.Span
	n, all := 0, 0
	for at := open + 1; n < len(arguments); {
		v, next := r.Argument(at, maxArgument, maxOther)
		if next < 0 {
			break
		}
		arguments[n] = v
		n++
		if v.From < v.To {
			all++
		}
		if next >= len(t) || t[next] != ',' {
			break
		}
		at = next + 1
	}
	k := rule.argument
	switch {
	case k == nameFirst:
		v := arguments[0]
		if n < 2 || v.From == v.To || v.To-v.From > names.MaxPairName || !r.Names.IsPairName(f, t[v.From:v.To]) {
			return lex.Span{}
		}
		k = 1
	case string(name) == "connect":
		switch {
		case calledOn(t, first, "oracle"):
			k = 1
			if n == 1 {
				return inLogin(t, arguments[0])
			}
		case calledOn(t, first, "oracledb") && n == 1:
			return inLogin(t, arguments[0])
		case calledOn(t, first, "oracledb"), calledOn(t, first, "wlan"), calledOn(t, first, "wifi"):
			k = 1
		case n > 3 && arguments[1].From == arguments[1].To:
			k = 3 // behind a port
		}
	case string(name) == "login" && n > 1, string(name) == "WebClient" && n > 1, string(name) == "create" && n < 2,
		(string(name) == "set_password" || string(name) == "setPassword") && n < 3,
		lex.HasFoldSuffix(name, "s3") && n > 2 && bytes.IndexByte(t[arguments[2].From:arguments[2].To], ' ') > 0: // columns
		return lex.Span{}
	case n == 4 && k == n && (string(name) == "remote" || string(name) == "remoteSecure"): // database.table
		k--
	}
	if k >= n {
		return lex.Span{}
	}
	v := arguments[k]
	if v.From == v.To || lex.MarkLen(t[v.From:]) > 0 || formats.IsPlaceholder(t[v.From:v.To]) {
		return lex.Span{}
	}
	return v
}

// inLogin finds SECRET in USER/SECRET@DATABASE.
func inLogin(t []byte, v lex.Span) lex.Span {
	c := argv.AtLogin.Within(t[v.From:v.To])
	return lex.Span{From: v.From + c.From, To: v.From + c.To}
}

// calledOn reports whether the name at first is one of a thing of that name, in
// any case: "jwt" in JWT.encode.
func calledOn(t []byte, first int, thing string) bool {
	to := first
	for to > 0 && first-to < 3 && (t[to-1] == '.' || t[to-1] == '>' || t[to-1] == '-' || t[to-1] == ':') {
		to--
	}
	for n := 0; n < len("MySQL()") && to > 1 && (t[to-1] == ')' || t[to-1] == '('); n++ {
		to--
	}
	return to < first && lex.HasFoldSuffix(t[max(0, to-32):to], thing)
}

// typedIn finds SECRET in locator("#password").fill("SECRET") and in
// type("input[name=password]", "SECRET").
func typedIn(r *literal.Reader, f *names.Folded, decided, first, open int) lex.Span {
	t := r.Text
	v, next := r.Argument(open+1, maxArgument, maxOther)
	if v.From == v.To {
		return lex.Span{}
	}
	about := t[v.From:v.To]
	if next > 0 && next < len(t) && t[next] == ',' {
		v, _ = r.Argument(next+1, maxArgument, maxOther)
	} else {
		// Of the statement before, no more than the last word and the byte before it.
		from, least, word := first, max(decided, first-2*names.MaxPairName), false
		for from > least && t[from-1] != ';' && t[from-1] != '\n' {
			from--
			isWord := lex.Classes[t[from]]&lex.IsName != 0
			if word && !isWord {
				break
			}
			word = word || isWord && t[from] != '.'
		}
		about = t[from:first]
	}
	if v.From == v.To || lex.MarkLen(t[v.From:]) > 0 || !mentions(r.Names, f, about) {
		return lex.Span{}
	}
	return v
}

// mentions reports whether the last word in quotation marks, or of a selector,
// is the name of a secret.
func mentions(n *names.Classifier, f *names.Folded, about []byte) bool {
	to := len(about)
	for to > 0 && lex.Classes[about[to-1]]&lex.IsName == 0 || to > 0 && about[to-1] == '.' {
		to--
	}
	from := to
	for from > 0 && to-from <= names.MaxPairName && lex.Classes[about[from-1]]&lex.IsName != 0 {
		from--
	}
	return bytes.IndexByte(about, '.') != from-1 && n.IsPairName(f, about[from:to])
}
