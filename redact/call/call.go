// Package call finds the secrets among the arguments of a function in a text, by the
// function's name: connect(host, user, "SECRET").
package call

import (
	"bytes"
	"strings"
	"sync"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// functions are those that open a connection, hash, sign or encrypt, by the last part of
// their names, with the number of the argument that is a secret: "PDO:2". Behind a thing
// and a point the text before the name ends in that, in any case: "jwt.sign:1". With "="
// the function sets a variable whose name is before the secret. With "<" that is
// the second argument of three. With ">" it fills in the field of a form, and with "?" it
// compares: what is beside the secret says so. With "%" it encodes NAME:SECRET.
const functions = "PDO:2 mysqli:2 mysqli_connect:2 mysqli_real_connect:3 real_connect:2 mysql_connect:2 mysql_pconnect:2 odbc_connect:2 odbc_pconnect:2 " +
	"oci_connect:1 oci_pconnect:1 oci_new_connect:1 db2_connect:2 ibase_connect:2 ftp_login:2 ldap_bind:2 imap_open:2 ssh2_auth_password:2 getConnection:2 " +
	"Sequelize:2 FTP:2 FTP_TLS:2 createUser:1 create_user:2 create_superuser:2 createAccount:1 basic_auth:1 basicAuth:1 BasicAuth:1 PlainAuth:2 CRAMMD5Auth:1 " +
	"NewStaticCredentials:1 NewStaticCredentialsProvider:1 PasswordAuthentication:1 BasicAWSCredentials:1 ClientSecretCredential:2 set_password:2 setPassword:2 " +
	"createHmac:1 hash_hmac:2 Fernet:0 createCipheriv:1 createDecipheriv:1 SecretKeySpec:0 simple_bind_s:1 simple_bind:1 crypt:0 hashpw:0 " +
	"generate_password_hash:0 password_hash:0 password_verify:0 check_password_hash:1 check_password:0 verify_password:0 GenerateFromPassword:0 CompareHashAndPassword:1 " +
	"scrypt:0 scryptSync:0 pbkdf2:0 pbkdf2Sync:0 pbkdf2_hmac:1 PBKDF2:0 PBEKeySpec:0 X509Certificate2:1 HmacSHA256:1 HmacSHA512:1 HMAC256:0 HMAC384:0 HMAC512:0 " +
	"hmacShaKeyFor:0 SymmetricSecurityKey:0 SignedString:0 signWith:0 signWith:1 NewCookieStore:0 URLSafeTimedSerializer:0 URLSafeSerializer:0 TimestampSigner:0 " +
	"Github:0 Stripe:0 WebClient:0 Octokit:0 Telegraf:0 TeleBot:0 Minio:2 InfluxDBClient:3 PlainTextAuthProvider:1 withCredentials:1 createCredential:2 " +
	"SMBConnection:1 CommunityData:0 UsmUserData:1 UsmUserData:2 OAuthHandler:1 UsernamePasswordCredentialsImpl:4 fromString:0 SftpClient:2 SshClient:2 " +
	"create_credential:2 CREATE_CREDENTIAL:2 set_authentication:2 SET_AUTHENTICATION:2 EncryptByPassPhrase:0 DecryptByPassPhrase:0 PWDCOMPARE:0 PWDENCRYPT:0 " +
	"pgp_sym_encrypt:1 pgp_sym_decrypt:1 aes_encrypt:1 aes_decrypt:1 AES_ENCRYPT:1 AES_DECRYPT:1 " +
	"s3:2 S3:2 s3Cluster:3 gcs:2 mysql:4 MySQL:4 postgresql:4 PostgreSQL:4 mongodb:4 MongoDB:4 remote:4 remoteSecure:4 azureBlobStorage:4 " + // of ClickHouse
	"connect:2 jwt.sign:1 jwt.encode:1 jwt.verify:1 jwt.decode:1 hmac.new:0 hmac.New:1 hmac.hexdigest:1 networkcredential.new:1 aes.new:0 des3.new:0 " +
	"cryptojs.aes.encrypt:1 cryptojs.aes.decrypt:1 credentials.basic:1 auth.basic:1 authtokens.basic:1 credentials.create:1 bcrypt.hash:0 bcrypt.compare:0 hash.make:0 hash.check:0 bcrypt:0 Sensitive:0 sensitive.new:0 algoliasearch:1 UsernamePasswordCredentials:1 BasicAuthenticationInterceptor:1 CosmosClient:1 Bind:1 slack.New:0 " +
	"openai.NewClient:0 NewBotAPI:0 discordgo.New:0 from_secret:0 credentials.new:1 credentials.from_static:1 basic.new:1 basicauth.new:1 auth.new:1 login.new:1 usernamepassword.new:1 ftp.open:2 ftp.new:2 curl_setopt:2 curl_easy_setopt:2 setopt:1 set_opt:1 curl_share_setopt:2 openssl_encrypt:2 openssl_decrypt:2 login:1 " +
	"ks.load:1 keystore.load:1 keystore.getKey:1 ks.getKey:1 kmf.init:1 nats.UserInfo:1 twilio.Client:1 wifi.begin:1 wifi.softAP:1 sta_if.connect:1 bot.run:0 client.login:0 bot.start:0 boto3.Session:1 " +
	"SetEnvironmentVariable:= set_config:= setenv:= Setenv:= putenv:= " +
	"fill:> type:> send_keys:> sendKeys:> setValue:> typeText:> fill_in:> press_sequentially:> pressSequentially:> val:> sendline:> SendKeys:> Fill:> FillAsync:> TypeAsync:> enterText:> setText:> set_value:> " +
	"set:< put:< set_option:< setItem:< setattr:< hset:< hSet:< " +
	"sendlineafter:> sendafter:> strcpy:> strncpy:> strlcpy:> strcat:> write:> btoa:% b64encode:% base64_encode:% strict_encode64:% encode64:% urlsafe_b64encode:% EncodeToString:% encodeToString:% base64encode:% " +
	"buffer.from:% GetBytes:% getBytes:% " +
	"gomail.NewDialer:3 NewPlainDialer:3 SendGridAPIClient:0 OAuth1UserHandler:1 OAuth1UserHandler:3 jenkins.Jenkins:2 add_password:3 SqlCredential:1 hashSync:0 password.create:0 " +
	"preemptive.basic:1 Twilio:1 twilio:1 Connection:2 smtp.start:4 gitlab.Gitlab:1 gitlab.NewClient:0 discord.New:0 client.new:1 flag.String:= SetBasicAuth:1 mysql_real_connect:3 mosquitto_username_pw_set:2 secretstring.from:0 secret.new:0 new_from_slice:0 aes.NewCipher:0 " +
	"HMACSHA256:0 HMACSHA512:0 rest.Client:1 TelegramBot:0 TelegramClient:2 " +
	"authenticate:0 bot.login:0 client.run:0 vault.create_secret:0 vault.update_secret:1 encrypt:2 decrypt:2 tryDecrypt:2 " +
	"equals:? equalsIgnoreCase:? Equals:? toBe:? toEqual:? isEqualTo:? strcmp:? strncmp:? hash_equals:? compare_digest:? " +
	"assertEquals:? assertEqual:? assertNotEquals:? assertNotEqual:? assertSame:? assertNotSame:? assert_equal:? assert_not_equal:? assert_eq:? assert_ne:? XCTAssertEqual:? AreEqual:? " +
	"AreNotEqual:? AreSame:? Equal:? NotEqual:? equal:? notEqual:? strictEqual:? notStrictEqual:? deepEqual:? deepStrictEqual:? eq:? eql:? toStrictEqual:? is:? equalTo:? EqualTo:? isSameAs:? " +
	"isEqual:? isEqualToString:? EXPECT_EQ:? ASSERT_EQ:? EXPECT_STREQ:? ASSERT_STREQ:? EqualFold:? ConstantTimeCompare:? timingSafeEqual:? secure_compare:? constant_time_compare:? safe_str_cmp:? " +
	"fixed_time_equals:? FixedTimeEquals:? contentEquals:? compareTo:? thenReturn:? willReturn:? returns:? Returns:? andReturn:? and_return:? mockReturnValue:? mockReturnValueOnce:? mockResolvedValue:? Return:? must_equal:? wont_equal:? cmp_ok:? " +
	"shouldBe:? shouldEqual:? mustBe:? mustEqual:? put_env:= store:= stub_const:= credentials:3 unlockAccount:1 read:> assign:> " +
	"passwordencoder.encode:0 passwordencoder.matches:0 emailauthprovider.credential:1 signInWithEmailAndPassword:2 createUserWithEmailAndPassword:2 " +
	"argon2.hash:0 argon2.verify:1 openssl_pkey_get_private:1 secretstring.new:0 secretbox.new:0 securestring.new:0"

// A function is one of them as it is read.
type function struct {
	of       string // what the text before its name ends in, "" for anything
	argument int8
}

// The arguments that are no numbers.
const (
	nameFirst  = int8('=') - '0'
	filledIn   = int8('>') - '0'
	compared   = int8('?') - '0'
	nameSecond = int8('<') - '0'
	userInfo   = int8('%') - '0'
)

const (
	maxArguments = 6
	maxArgument  = 256 // bytes of a string among them
	maxOther     = 64  // bytes of another value among them
	minCompared  = 4   // bytes of a secret that is compared
)

// parts returns the name of a function of the table, and what is said of it.
func parts(field string) (name string, f function) {
	name, f.argument = field[:len(field)-2], int8(field[len(field)-1])-'0'
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		f.of, name = name[:at], name[at+1:]
	}
	return name, f
}

// starts distinguishes most other functions from these, as argv.WordStarts does.
var starts = func() *lex.WordSet {
	var set lex.WordSet
	for field := range strings.FieldsSeq(functions) {
		name, _ := parts(field)
		set.Add(name)
	}
	return &set
}()

// byName has the functions by name. They are read for the first text that has one.
var byName = sync.OnceValue(func() map[string][]function {
	table := make(map[string][]function)
	for field := range strings.FieldsSeq(functions) {
		name, f := parts(field)
		table[name] = append(table[name], f)
	}
	return table
})

// Find adds the secrets among the arguments of the call in r.Text whose parenthesis is
// at open, behind a name that starts at first, to found, and reports whether there are
// any, which may have been redacted. Text before from has been decided. f is scratch
// memory.
func Find(found []lex.Span, r *literal.Reader, f *names.Folded, from, first, open int) (all []lex.Span, known bool) {
	t := r.Text
	name := bytes.TrimSuffix(t[first:open], []byte("!")) // of a macro of Rust
	if len(name) < 2 || !starts.Has(name) {
		return found, false
	}
	for _, rule := range byName()[lex.View(name)] {
		if rule.of != "" && !calledOn(t, first, rule.of) {
			continue
		}
		v := lex.Span{}
		switch rule.argument {
		case filledIn, compared:
			v = beside(r, f, from, first, open)
			if rule.argument == compared && v.To-v.From < minCompared {
				continue
			}
		default:
			v = among(r, f, rule, first, open)
		}
		if v.From >= v.To || formats.IsPlaceholder(t[v.From:v.To]) {
			continue
		}
		if known = true; lex.MarkLen(t[v.From:]) == 0 {
			found = append(found, v)
		}
	}
	return found, known
}

// among finds the secret at its place among the arguments of a function.
func among(r *literal.Reader, f *names.Folded, rule function, first, open int) lex.Span {
	t := r.Text
	c := call{t: t, name: t[first:open], first: first, rule: rule}
	if string(c.name) == "password_hash" && bytes.HasSuffix(bytes.TrimRight(t[max(0, first-8):first], " "), []byte("|")) {
		return filtered(t, first)
	}
	for at := open + 1; c.n < len(c.arguments); {
		v, next := argument(r, at)
		if next < 0 {
			break
		}
		c.arguments[c.n] = v
		c.n++
		if next >= len(t) || t[next] != ',' {
			break
		}
		at = next + 1
	}
	isName := func(v lex.Span) bool {
		return v.From < v.To && v.To-v.From <= names.MaxPairName && r.Names.IsPairName(f, t[v.From:v.To])
	}
	at := -1
	switch {
	case c.n == 0: // the text breaks off
	case rule.argument == userInfo:
		return inUserInfo(t, first, c.arguments[0])
	case rule.argument == nameSecond:
		if c.n == 3 && isName(c.arguments[1]) {
			at = 2
		}
	case rule.argument == nameFirst:
		if c.n > 1 && isName(c.arguments[0]) {
			at = 1
		}
	case string(c.name) == "connect" && c.n == 1 && (c.isOf("oracle") || c.isOf("oracledb")):
		return inLogin(t, c.arguments[0])
	case lex.HasFoldSuffix(c.name, "opt"):
		v := c.arguments[rule.argument]
		switch option := t[open:max(open, v.From)]; {
		case v.From == v.To:
		case bytes.Contains(option, []byte("PWD")):
			return lex.Span{From: v.From + bytes.IndexByte(t[v.From:v.To], ':') + 1, To: v.To}
		case mentions(r.Names, f, bytes.TrimRight(option, "bru\"' ,")):
			return v
		}
	default:
		at = c.place()
	}
	if at < 0 || at >= c.n {
		return lex.Span{}
	}
	return c.arguments[at]
}

// A call is one of a function of the table, as it is read.
type call struct {
	t         []byte
	name      []byte // of the function, which starts at first
	first     int
	rule      function
	arguments [maxArguments]lex.Span // those that are strings, others are empty
	n         int
}

func (c *call) isOf(thing string) bool { return calledOn(c.t, c.first, thing) }

func (c *call) isString(i int) bool { return c.arguments[i].From < c.arguments[i].To }

func (c *call) argument(i int) []byte { return c.t[c.arguments[i].From:c.arguments[i].To] }

// place returns which argument is the secret, by the function's name and by what the others are:
// functions of one name are called in several ways. It returns -1 if none is.
func (c *call) place() int {
	n, at := c.n, int(c.rule.argument)
	none := false
	switch name := string(c.name); name {
	case "connect":
		switch {
		case c.isOf("oracle"), c.isOf("oracledb"), c.isOf("wlan"), c.isOf("wifi"):
			return 1
		case n > 3 && !c.isString(1):
			return 3 // behind a port
		}
		return at
	case "login": // login(USER, SECRET), login(HOST, USER, SECRET) with a variable
		if at == 1 {
			if c.isString(0) {
				return -1
			}
			return min(n, 3) - 1
		}
		none = at == 0 && c.rule.of == "bot" && !prose.LooksSecret(c.argument(0)) || n > 1
	case "run":
		none = at == 0 && c.rule.of == "client" && (n > 1 || !prose.LooksSecret(c.argument(0))) // a command
	case "authenticate":
		none = at == 0 && (n > 1 || !prose.LooksSecret(c.argument(0))) // or a strategy
	case "Connection", "Bind": // of LDAP, by the name of an entry
		none = name == "Bind" && bytes.IndexByte(c.argument(0), '=') < 0 ||
			name == "Connection" && (n < 3 || !bytes.ContainsAny(c.argument(1), "=\\@"))
	case "new":
		none = c.isOf("client") && (n != 2 || !c.isString(0) || bytes.ContainsAny(c.argument(0), "/:. ") || !prose.LooksSecret(c.argument(1)))
	case "WebClient":
		none = n > 1
	case "create":
		none = n <= at
	case "fromString":
		none = !c.isOf("secret")
	case "signWith":
		none = n-1 != at
	case "set_password", "setPassword":
		none = n < 3
	case "signInWithEmailAndPassword", "createUserWithEmailAndPassword": // behind the client, or of it
		at = n - 1
	}
	switch {
	case lex.HasFoldSuffix(c.name, "client") && n > 3 && !c.isString(1): // of SFTP and SSH
		return 3
	case none, n > 1 && (c.isOf("secret") || c.isOf("secretstring")), // an object of that name
		lex.HasFoldSuffix(c.name, "s3") && n > 2 && bytes.IndexByte(c.argument(2), ' ') > 0: // columns
		return -1
	case n == 2 && string(c.name) == "create_user": // of SQL, without an address
		return 1
	case n == 4 && at == n && (string(c.name) == "remote" || string(c.name) == "remoteSecure" || lex.HasFoldSuffix(c.name, "postgresql") ||
		lex.HasFoldSuffix(c.name, "mysql")): // database.table, or an engine of databases
		return at - 1
	}
	return at
}

// argument returns the string that is the argument at i, or in a call that makes bytes
// of it, and where the argument ends, as literal.Reader's Argument does.
func argument(r *literal.Reader, i int) (v lex.Span, next int) {
	t := r.Text
	for i < len(t) && t[i] <= ' ' {
		i++
	}
	for _, name := range [...]string{"key=", "secret="} { // of Python
		i = max(i, lex.After(t, i, name))
	}
	open := i
	for open < len(t) && open-i < maxWrapper && (lex.Classes[t[open]]&lex.IsName != 0 || t[open] == '[' || t[open] == ']') {
		open++
	}
	if open == i || open == len(t) || t[open] != '(' || !makesBytes(t[i:open]) {
		return r.Argument(i, maxArgument, maxOther)
	}
	if v, next = r.Argument(open+1, maxArgument, maxOther); next >= 0 {
		_, next = r.Argument(next+1, 0, maxOther)
	}
	return v, next
}

// maxChain is how many words without a meaning a comparison has at most.
const maxChain = 3

// maxWrapper is the longest name of a function that makes bytes of a string.
const maxWrapper = 24

// makesBytes reports whether a function of that name makes bytes or a key of a string.
func makesBytes(name []byte) bool {
	for _, end := range [...]string{"[]byte", "bytes", "from", "fromString", "encode", "decode", "utf8", "some"} {
		if lex.HasFoldSuffix(name, end) {
			return true
		}
	}
	return false
}

// filtered finds SECRET in {{ 'SECRET' | password_hash('sha512') }}, as Jinja has it,
// where the function's name is at i.
func filtered(t []byte, i int) lex.Span {
	before := bytes.TrimRight(t[max(0, i-maxArgument):i], " ")
	if len(before) < 3 || before[len(before)-1] != '|' {
		return lex.Span{}
	}
	before = bytes.TrimRight(before[:len(before)-1], " ")
	n := len(before) - 1
	if n < 1 || lex.Classes[before[n]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	at := bytes.LastIndexByte(before[:n], before[n])
	if at < 0 {
		return lex.Span{}
	}
	from := max(0, i-maxArgument)
	return lex.Span{From: from + at + 1, To: from + n}
}

// inUserInfo finds SECRET in NAME:SECRET, which the function at first encodes for a header
// (RFC 7617).
func inUserInfo(t []byte, first int, v lex.Span) lex.Span {
	user, secret, ok := bytes.Cut(t[v.From:v.To], []byte(":"))
	if !ok || len(user) == 0 || len(secret) < 2 || secret[0] == '/' || bytes.IndexByte(t[v.From:v.To], ' ') >= 0 || lex.IsPort(secret) {
		return lex.Span{}
	}
	for _, c := range user {
		if lex.Classes[c]&lex.IsName == 0 && c != '@' && c != '+' {
			return lex.Span{}
		}
	}
	if lex.HasFoldSuffix(t[first:first+len("getBytes")], "getbytes") && !bytes.Contains(bytes.ToLower(t[max(0, first-maxArgument):first]), []byte("base64")) {
		return lex.Span{}
	}
	return lex.Span{From: v.To - len(secret), To: v.To}
}

// End returns where the argument ends whose string ends at i, behind a method that makes
// something of it: "SECRET".toCharArray().
func End(t []byte, i int) int {
	if i >= len(t) || t[i] != '.' {
		return i
	}
	end := i + 1
	for end < len(t) && end-i < maxWrapper && lex.Classes[t[end]]&lex.IsName != 0 {
		end++
	}
	if !bytes.HasPrefix(t[end:], []byte("()")) {
		return i
	}
	return end + len("()")
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
	for to > 0 && first-to < 3 && (t[to-1] == '.' || t[to-1] == '>' || t[to-1] == '-' || t[to-1] == ':' || t[to-1] == ']') {
		to--
	}
	for n := 0; n < len("MySQL()") && to > 1 && (t[to-1] == ')' || t[to-1] == '('); n++ {
		to--
	}
	return to < first && lex.HasFoldSuffix(t[max(0, to-32):to], thing)
}

// beside finds SECRET in locator("#password").fill("SECRET"), in
// type("input[name=password]", "SECRET"), and in password.equals("SECRET"),
// "SECRET".equals(password) and strcmp(password, "SECRET").
func beside(r *literal.Reader, f *names.Folded, decided, first, open int) lex.Span {
	t := r.Text
	name := t[first:open]
	v, next := argument(r, open+1)
	if next > open+1 && next-open <= len("(tb") && t[next] == ',' && v.From == v.To && string(t[open+1:next]) != "pw" { // Equal(t, "SECRET", password) of Go
		open = next
		v, next = argument(r, open+1)
	}
	if next < 0 {
		return lex.Span{}
	}
	var about []byte
	switch {
	case string(name) == "read": // of strace, behind what asks for it: read(0, "SECRET\n", 511)
		if before := t[max(0, first-maxArgument):first]; next >= len(t) || t[next] != ',' || !bytes.Contains(before, []byte("write(")) ||
			!bytes.Contains(before, []byte("assword")) && !bytes.Contains(before, []byte("assphrase")) {
			return lex.Span{}
		}
		if v.From == v.To {
			v, _ = argument(r, next+1)
		}
		v.To -= len(t[v.From:v.To]) - len(bytes.TrimSuffix(t[v.From:v.To], []byte(`\n`)))
		return v
	case next < len(t) && t[next] == ',':
		if about = t[v.From:v.To]; v.From == v.To {
			about = t[open:next]
		}
		second, end := argument(r, next+1)
		if second.From == second.To && end > 0 {
			about = t[next:end] // strcmp("SECRET", password)
			if first > 0 && t[first-1] == '.' && (takesMore(name) || end > next+2 && bytes.HasPrefix(bytes.TrimLeft(about, ", "), []byte("{"))) {
				about = object(t, decided, first) // type("SECRET", {log: false}), send_keys("SECRET", Keys.RETURN)
			}
		} else {
			v = second
		}
	case v.From == v.To && first > 2 && t[first-1] == '.' && lex.Classes[t[first-2]]&lex.IsQuote != 0:
		about = t[open:next]
		if at := bytes.LastIndexByte(t[max(decided, first-maxArgument):first-2], t[first-2]); at >= 0 {
			v = lex.Span{From: max(decided, first-maxArgument) + at + 1, To: first - 2}
		}
	case lex.HasFoldSuffix(t[first:open], "sendline"), string(t[first:open]) == "write": // of pexpect, of telnetlib
		if open-first == len("write") && !bytes.Contains(t[max(0, first-maxArgument):first], []byte("read_until(")) {
			return lex.Span{}
		}
		if before := t[max(0, first-maxArgument):first]; bytes.Contains(before, []byte("assword")) || bytes.Contains(before, []byte("assphrase")) {
			return v
		}
		return lex.Span{}
	default:
		about = object(t, decided, first)
	}
	if !mentions(r.Names, f, about) {
		return lex.Span{}
	}
	return v
}

// takesMore reports whether a method of that name takes what is no secret behind the one it has.
func takesMore(name []byte) bool {
	return string(name) == "assign" || string(name) == "send_keys" || string(name) == "sendKeys" || string(name) == "type" || string(name) == "fill"
}

// object returns what the method at first is called on, without the methods between.
func object(t []byte, decided, first int) []byte {
	// Of the statement before, no more than the last word and the byte before it.
	from, least, word := first, max(decided, first-2*names.MaxPairName), false
	for n := 0; n < maxChain && from > least; n++ { // expect(password).to.be.equal(
		link := bytes.TrimRight(t[least:from], ". ")
		for _, verb := range [...]string{".to", ".not", ".be", ".deep", ".is", ".and", ".clear()", ".focus()", ".click()"} {
			if bytes.HasSuffix(link, []byte(verb)) {
				from = least + len(link) - len(verb)
			}
		}
	}
	if bytes.HasSuffix(t[least:from], []byte("/i).")) { // findByLabelText(/password/i).
		from -= len("/i).")
	}
	end := from
	for from > least && t[from-1] != ';' && t[from-1] != '\n' {
		from--
		isWord := lex.Classes[t[from]]&lex.IsName != 0
		if word && !isWord {
			break
		}
		word = word || isWord && t[from] != '.'
	}
	return t[from:end]
}

// mentions reports whether the last word in quotation marks, or of a selector,
// is the name of a secret.
func mentions(n *names.Classifier, f *names.Folded, about []byte) bool {
	to := len(bytes.TrimSuffix(bytes.TrimRight(about, ")"), []byte("/i")))
	for to > 0 && lex.Classes[about[to-1]]&lex.IsName == 0 || to > 0 && about[to-1] == '.' {
		to--
	}
	from := to
	for from > 0 && to-from <= names.MaxPairName && lex.Classes[about[from-1]]&lex.IsName != 0 {
		from--
	}
	return (from == 0 || bytes.IndexByte(about, '.') != from-1) && (n.IsPairName(f, about[from:to]) || bytes.EqualFold(about[from:to], []byte("pw")))
}
