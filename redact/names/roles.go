package names

import (
	"bytes"
	"sync"

	"auditproxy/internal/wordlist"
	"auditproxy/redact/lex"
)

// MaxPairName is the longest value, in bytes, that can be the name of another
// one.
const MaxPairName = 64

// IsPairName reports whether a value is the name of a secret elsewhere: the
// "DB_PASSWORD" of {"name":"DB_PASSWORD","data":"x"}.
func (n *Classifier) IsPairName(f *Folded, value []byte) bool {
	if len(value) == 0 || len(value) > MaxPairName || bytes.Count(value, []byte(" ")) > 2 {
		return false
	}
	if bytes.ContainsAny(value, "!#^*+~?") {
		return false // no name has them
	}
	f.Fold(value)
	return n.Sensitive(f, NoWhole|Keyed(value))
}

// IsVariable reports whether a name looks like one of a variable or a header:
// "DB_PASSWORD", "X-Api-Key", "Authorization". Columns and objects do not.
func IsVariable(name []byte) bool {
	letters, parts := false, false
	for _, c := range name {
		if 'a' <= c && c <= 'z' {
			letters = true
		}
		parts = parts || c == '_' || c == '-'
	}
	if !letters {
		return parts
	}
	return 'A' <= name[0] && name[0] <= 'Z' && (bytes.IndexByte(name, '-') > 0 || string(name) == "Authorization" || string(name) == "Cookie")
}

// A Role is a member's relation to the others of its object.
type Role uint8

const (
	OtherRole     Role = iota
	NameRole           // its value may name another member's value
	ValueRole          // another member may name its value
	PlainRole          // it describes the other two
	ProgramRole        // it holds a program to run
	PathRole           // it holds the path of what another holds
	StatementRole      // it holds a statement of SQL
	FlagRole           // if true, the object's value is a secret
	SecretRole         // it names the secret whose value the object has
	FieldRole          // it describes the field of a form that is filled in
	CardRole           // it is of a payment card, as another one may be
)

// RoleOf returns the role of a member's name.
func RoleOf(name []byte) Role {
	var buf [maxRole]byte
	lower := lowered(&buf, name)
	if len(lower) == 0 {
		return OtherRole
	}
	if n := roleTable().List(lex.View(lower)); n > 0 {
		return Role(n)
	}
	return lastRole(lower)
}

// roleTable has the names of each role, in the order of the roles.
var roleTable = sync.OnceValue(func() *wordlist.Table {
	return wordlist.New(
		"name key k n header headername header_name field fieldname field_name variable varname var param parameter property prop "+
			"attribute attr setting keyname key_name envname env_name env env_var envvar identifier id label option question prompt prompt_pattern expect column column_name columnname", // NameRole
		"value val v values data content contents default defaultvalue default_value fallback current currentvalue new newvalue new_value "+
			"old oldvalue old_value stringvalue string_value valuestring rawvalue raw_value raw plaintext plain payload text string "+
			"secretvalue input_text text_to_type content_to_type txt str body to set arg argument answer fill response reply chars characters keystrokes entry phrase typed send", // ValueRole
		"type kind ref in role description required enabled format namespace order sort direction op operator example "+
			"schema action tool output scope version title readonly mode optional hidden index count url resourcetype color icon size "+
			"state status owner assignee priority milestone level table", // PlainRole
		"command cmd program executable exe bin binary file",                                                                        // ProgramRole
		"path file_path filepath filename file_name mount_path parent json_path jsonpath key_path keypath",                          // PathRole
		"sql query statement stmt sql_query sqlquery query_text querytext command_text commandtext sql_text sqltext raw_sql rawsql", // StatementRole
		"secret is_secret issecret sensitive is_sensitive issensitive masked",                                                       // FlagRole
		"secret_name secretname secret_id secretid secret_path secretpath vault_path vaultpath",                                     // SecretRole
		"selector locator css xpath element",                                                                                        // FieldRole
		"card cards card_details carddetails card_data carddata card_info cardinfo card_type cardtype card_brand cardbrand cardholder card_holder "+
			"cardholdername cardholder_name name_on_card nameoncard cvc cvc2 cvv cvv2 cvn csc card_code cardcode security_code securitycode "+
			"exp_month exp_year expmonth expyear expiry_month expiry_year expirymonth expiryyear expiration_month expiration_year expirationmonth "+
			"expirationyear expiry_date expirydate expiration_date expirationdate card_expiry cardexpiry", // CardRole
	)
})

// lastRole returns the role of a name that ends in another one's: "parametervalue".
func lastRole(name []byte) Role {
	for n := len("id"); n <= len("value") && n < len(name); n++ {
		switch string(name[len(name)-n:]) {
		case "value", "val":
			return ValueRole
		case "key", "name":
			return NameRole
		case "type", "kind", "id", "ref":
			return PlainRole
		}
	}
	return OtherRole
}

// maxRole is the longest name, in bytes, that says what the member is to others.
const maxRole = 24

// lowered returns name with small letters, in buf; nothing if it is too long.
func lowered(buf *[maxRole]byte, name []byte) []byte {
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return buf[:len(name)]
}

// IsArguments reports whether a member's name, in any case, is that of the arguments of
// the program that another one names, in one string.
func IsArguments(name []byte) bool {
	var buf [maxRole]byte
	switch string(lowered(&buf, name)) {
	case "args", "arguments", "argv", "arg", "flags", "options", "params", "parameters":
		return true
	}
	return false
}

// IsLogin reports whether a name is one that a login has beside a secret.
func IsLogin(name []byte) bool {
	switch string(name) {
	case "user", "username", "login", "email", "account", "host", "hostname", "server", "uid", "USER", "USERNAME", "User", "Username", "LOGIN", "EMAIL", "HOST", "Host", "database", "db", "port", "url", "PGUSER", "DB_USER":
		return true
	}
	return false
}

// IsKeyPart reports whether a name is that of a secret number of a key.
func IsKeyPart(name []byte) bool {
	switch string(name) {
	case "d", "p", "q", "dp", "dq", "qi", "k":
		return true
	}
	return false
}

// IsKeyTag reports whether an element of an RSAKeyValue has a secret number.
func IsKeyTag(name []byte) bool {
	switch string(name) {
	case "D", "P", "Q", "DP", "DQ", "InverseQ":
		return true
	}
	return false
}

// IsColumn reports whether a text is the name of a column or of a field.
func IsColumn(b []byte) bool {
	for _, end := range [...]string{"_at", "_id", "_name", "_type", "_count", "_date", "_hash", "_by", "_on"} {
		if bytes.HasSuffix(b, []byte(end)) {
			return true
		}
	}
	if IsLogin(b) {
		return true
	}
	r := RoleOf(b)
	return r == NameRole || r == PlainRole || r == PathRole
}

// IsFile reports whether path is that of a file with a secret in it.
func (n *Classifier) IsFile(f *Folded, path []byte) bool {
	base := path[bytes.LastIndexByte(path, '/')+1:]
	if n.IsPairName(f, base) {
		return true
	}
	dot := bytes.LastIndexByte(base, '.')
	return dot > 0 && n.IsPairName(f, base[:dot])
}

// HoldsSecrets reports whether path is where programs and vaults keep secrets, or
// that of a file with one in it.
func (n *Classifier) HoldsSecrets(f *Folded, path []byte) bool {
	for _, start := range [...]string{"secret/", "secrets/", "kv/", "/run/secrets/", "/etc/ssl/private/"} {
		if bytes.HasPrefix(path, []byte(start)) {
			return true
		}
	}
	return bytes.Contains(path, []byte("/.ssh/id_")) || bytes.Contains(path, []byte("/secrets/")) || n.IsFile(f, path)
}

// IsSource reports whether path is that of a file of source text or prose: the
// next one of a list is no secret because of its name.
func IsSource(path []byte) bool {
	switch string(path[bytes.LastIndexByte(path, '.')+1:]) {
	case "go", "py", "ts", "tsx", "js", "jsx", "rs", "java", "kt", "c", "h", "cc", "cpp", "cs", "rb", "php", "swift", "sh", "sql", "md", "rst", "html", "css", "vue":
		return true
	}
	return false
}

// IsKind reports whether a member's name is that of the kind of its object.
func IsKind(name []byte) bool {
	switch name[len(name)-1] {
	case 'e', 'd', 'y':
		return lex.HasFoldSuffix(name, "type") || lex.HasFoldSuffix(name, "kind") || lex.HasFoldSuffix(name, "category")
	}
	return false
}

// IsSecretKind reports whether an object of that kind has a secret: "SecureString".
func IsSecretKind(value []byte) bool {
	switch string(value) {
	case "secret", "Secret", "SECRET", "secret_text", "secretText", "SecureString", "secureString", "encrypted", "sensitive", "password", "Password":
		return true
	}
	return false
}

// IsSecretObject reports whether a member says by its value that its object is a Secret of
// Kubernetes: {"kind":"Secret"}, {"resourceType":"secrets"}.
func IsSecretObject(name, value []byte) bool {
	switch string(name) {
	case "kind":
		return string(value) == "Secret"
	case "resourceType", "resource_type", "resourcetype":
		return bytes.EqualFold(bytes.TrimSuffix(value, []byte("s")), []byte("secret"))
	}
	return false
}

// Mentions reports whether one of the words of a selector or a description, or two of them,
// are the name of a secret: "input[name=password]", "the API key field".
func (n *Classifier) Mentions(f *Folded, t []byte) bool {
	before := -1 // where the word before starts, if only a space is between
	for i := 0; i < len(t); {
		from := i
		for i < len(t) && (lex.Classes[t[i]]&lex.IsAlnum != 0 || t[i] == '_' || t[i] == '-') {
			i++
		}
		if i-from > 2 && n.IsPairName(f, t[from:i]) || before >= 0 && i > from && n.IsPairName(f, t[before:i]) {
			return true
		}
		if before = -1; i > from && i < len(t) && t[i] == ' ' {
			before = from
		}
		i++
	}
	return false
}

// IsLoginCall reports whether a member names, by its value, a function that is given the
// password of a user: {"method":"login","params":["ann","SECRET"]}.
func IsLoginCall(name, value []byte) bool {
	switch string(name) {
	case "method", "function", "fn", "procedure", "rpc":
	default:
		return false
	}
	value = value[bytes.LastIndexAny(value, "./:")+1:]
	for _, login := range [...]string{"login", "logon", "signin", "sign_in", "authenticate"} {
		if len(value) == len(login) && lex.HasFoldSuffix(value, login) {
			return true
		}
	}
	return false
}

// HoldsValue reports whether t has a value of its own behind a name: NAME=VALUE.
func HoldsValue(t []byte) bool {
	at := bytes.IndexAny(t, "=:")
	return at > 0 && len(bytes.TrimSpace(t[at+1:])) > 0
}

// IsManifest reports whether t has "kind: Secret", as YAML or as JSON.
func IsManifest(t []byte) bool {
	for {
		at := bytes.Index(t, []byte("kind"))
		if at < 0 {
			return false
		}
		t = t[at+len("kind"):]
		kind := bytes.TrimLeft(t[:min(len(t), 32)], "\\\"' :\t")
		if len(kind) >= 6 && lex.HasFoldSuffix(kind[:6], "secret") && (len(kind) == 6 || lex.Classes[kind[6]]&lex.IsName == 0) {
			return true
		}
	}
}

// IsBinding reports whether the form of Lisp that t ends in, before its value, gives a
// variable one: (defvar *token*.
func IsBinding(t []byte) bool {
	t = t[max(0, len(t)-2*MaxPairName):]
	form := t[bytes.LastIndexByte(t, '(')+1:]
	return bytes.HasPrefix(form, []byte("def")) || bytes.HasPrefix(form, []byte("set"))
}

// IsValueTag reports whether t starts with the name of an XML element that holds
// a value.
func IsValueTag(t []byte) bool {
	n := 0
	for n < len(t) && n < 16 && lex.Classes[t[n]]&lex.IsAlnum != 0 {
		n++
	}
	return n < len(t) && t[n] == '>' && RoleOf(t[:n]) == ValueRole
}

// IsOperator reports whether b is what compares a name with the value behind it, or sets it.
func IsOperator(b []byte) bool {
	switch string(b) {
	case "=", "==", "===", "!=", "<>", ":", ":=", "=>", "eq", "is", "equals":
		return true
	}
	return false
}
