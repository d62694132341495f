package prose

import (
	"bytes"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"auditproxy/internal/wordlist"
	"auditproxy/redact/lex"
)

// The nouns that start in ASCII. A text without any of them, and without a letter
// of another script, tells no secret.
const (
	// Passwords are for any secret that people choose.
	Passwords = "PASS password Password PASSWORD passphrase Passphrase PASSPHRASE passcode Passcode PASSCODE passwd Passwd PASSWD pwd Pwd PWD passwort " +
		"Passwort PASSWORT kennwort Kennwort KENNWORT wachtwoord Wachtwoord WACHTWOORD senha Senha SENHA parola Parola PAROLA heslo Heslo " +
		"HESLO salasana Salasana SALASANA passord Passord PASSORD adgangskode Adgangskode ADGANGSKODE kodeord Kodeord KODEORD lozinka " +
		"Lozinka LOZINKA contraseña Contraseña CONTRASEÑA contrasena Contrasena CONTRASENA losenord Losenord " +
		"LOSENORD salasanani Salasanani jelszavam Jelszavam parolam Parolam adgangskoden Adgangskoden passordet Passordet jelszó Jelszó JELSZÓ " +
		"hasłem Hasłem hasła Hasła heslem Heslem hesla Hesla geslom lozinkom salasanalla salasanan parolą jelszóval " +
		"mdp Mdp geslo Geslo slaptažodis Slaptažodis salasõna Salasõna lykilorðið Lykilorðið passwordnya Passwordnya sandinya Sandinya maiden"
	// Others have other meanings too: see Follows.
	Others = "token Token TOKEN jeton Jeton secret Secret SECRET key Key KEY pin Pin PIN code Code CODE otp Otp OTP login Login LOGIN logins Logins LOGINS " +
		"credentials Credentials CREDENTIALS creds Creds CREDS log Log LOG sign Sign SIGN logged Logged LOGGED zugangsdaten Zugangsdaten zugang Zugang " +
		"ZUGANGSDATEN clave Clave CLAVE pass Pass passe Passe PASSE pw Pw PW hasło Hasło HASŁO haslo Haslo HASLO khẩu Khẩu KHẨU sandi " +
		"Sandi SANDI chave Chave CHAVE chiave Chiave CHIAVE cvv CVV cvc CVC codigo Codigo answer Answer"
)

// isLinked reports whether rest, the text behind one of Others, says what it is, or starts
// with a random word.
func isLinked(rest []byte) bool {
	if rest[0] != ' ' {
		return rest[0] == ':' || rest[0] == '?' || rest[0] == '\n'
	}
	word := rest[1:min(len(rest), 10)]
	if at := bytes.IndexByte(word, ' '); at >= 0 {
		word = word[:at]
	}
	switch string(word) {
	case "API", "in", "into", "are", "with", "as", "using", "details", "details:", "data:", "info:", "/", "de":
		return true
	}
	_, link := linkOf(word)
	return link > 0 || isOf(word) || isMixed(rest[1:]) || startsRandom(rest[1:])
}

// startsRandom reports whether what t starts with may be random, of letters and digits,
// without four letters in a row as names in programs have them.
func startsRandom(t []byte) bool {
	const least, changes = 15, 3
	changed, small := 0, 0
	for i := range least {
		if i == len(t) || lex.Classes[t[i]]&lex.IsAlnum == 0 || t[i] >= 0x80 {
			return false
		}
		if i > 0 && lex.IsDigit(t[i]) != lex.IsDigit(t[i-1]) {
			changed++
		}
		if small++; t[i] < 'a' {
			small = 0
		}
		if small == 4 {
			return false
		}
	}
	return changed >= changes
}

// isMixed reports whether t starts with a word of large and small letters and digits, of
// ten or more, which is none of a language or of a program's text: those have four small
// letters in a row.
func isMixed(t []byte) bool {
	upper, digit, small, run, n := false, false, false, 0, 0
	for n < len(t) && lex.Classes[t[n]]&lex.IsAlnum != 0 {
		run++
		switch c := t[n]; {
		case lex.IsDigit(c):
			digit, run = true, 0
		case c < 'a':
			upper, run = true, 0
		case run == 4:
			return false
		default:
			small = true
		}
		n++
	}
	return n >= 10 && upper && digit && small
}

// A noun is a kind of word that a secret may follow.
type noun uint8

const (
	noNoun   noun = iota
	password      // any word may be one
	number        // four digits may be one
	key           // only what looks like one
	logins        // a name and a secret follow
)

// nounOf returns the kind of w.
func nounOf(w []byte) noun {
	if len(w) < 2 || !isCased(w) {
		return noNoun
	}
	var buf [24]byte
	lower := lowered(&buf, w)
	switch string(lower) {
	case "password", "passphrase", "passwd", "passcode", "pwd", "passwort", "kennwort", "wachtwoord", "senha", "parola", "heslo", "salasana", "passord",
		"adgangskode", "kodeord", "lozinka", "contraseña", "contrasena", "passe", "hasło", "haslo", "lösenord", "losenord", "lösenordet", "adgangskoden", "passordet", "jelszó", "jelszavam", "salasanani", "parolam", "şifre", "şifresi", "şifrem", "sandi", "khẩu", "pass", "pw",
		"hasłem", "hasła", "heslem", "hesla", "geslom", "lozinkom", "salasanalla", "salasanan", "parolą", "jelszóval", "паролем", "паролю", "пароле", "лозинком", "şifreyle",
		"mdp", "geslo", "slaptažodis", "salasõna", "lykilorðið", "passwordnya", "sandinya",
		"пароль", "пароля", "κωδικός", "κωδικό", "parolă", "סיסמה", "הסיסמה", "סיסמתי", "पासवर्ड", "कूटशब्द", "पासकोड", "পাসওয়ার্ড", "السر", "گذرواژه", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "รหัสผ่าน", "المرور":
		return password
	case "pin", "code", "otp", "cvv", "cvc", "código", "codigo", "код", "验证码", "驗證碼", "認証コード", "인증번호":
		return number
	case "token", "secret", "key", "clave", "chave", "chiave", "clé", "schlüssel", "jeton", "令牌", "密钥", "密鑰", "トークン", "토큰", "токен", "ключ":
		return key
	case "login", "logins", "log", "sign", "logged", "credentials", "creds", "zugangsdaten", "zugang":
		return logins
	}
	return noNoun
}

// lowered returns w in lower case, in buf if it is not w itself: nothing if it is too long.
func lowered(buf *[24]byte, w []byte) []byte {
	if len(w) > len(buf) {
		return nil
	}
	n := 0
	for n < len(w) && 'a' <= w[n] && w[n] <= 'z' {
		n++
	}
	if n == len(w) { // as most words are
		return w
	}
	for copy(buf[:], w[:n]); n < len(w) && w[n] < utf8.RuneSelf; {
		buf[n] = w[n]
		if isUpper(w[n]) {
			buf[n] += 'a' - 'A'
		}
		n++
	}
	lower := buf[:n]
	for _, r := range lex.View(w[n:]) {
		r = unicode.ToLower(r)
		if len(lower)+utf8.RuneLen(r) > len(buf) {
			return nil
		}
		lower = utf8.AppendRune(lower, r)
	}
	return lower
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isCased reports whether w has one case, or only its first letter is a capital.
func isCased(w []byte) bool {
	lower, upper := 0, 0
	for i, r := range lex.View(w) {
		switch {
		case i == 0:
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		}
	}
	return upper == 0 || lower == 0 && isUpper(w[0])
}

// isOther reports whether w, a noun of that kind, has other meanings too.
func isOther(w []byte, kind noun) bool {
	if kind != password || string(w) == "PASS" {
		return kind != password
	}
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "pass", "passe", "pw", "hasło", "haslo", "khẩu", "sandi":
		return true
	}
	return false
}

// foreignNoun returns the length of a noun that b starts with and that no space separates from
// what is around it.
func foreignNoun(b []byte) int {
	if b[0] < 0xE0 || len(b) < 3 {
		return 0
	}
	switch string(b[:3]) {
	case "密", "口", "パ", "暗", "비", "암", "ร", "令", "ト", "토", "验", "驗", "認", "인":
	default:
		return 0
	}
	for _, n := range [...]string{"密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "รหัสผ่าน", "令牌", "密钥", "密鑰", "トークン", "토큰", "验证码", "驗證碼", "認証コード", "인증번호"} {
		if len(b) >= len(n) && b[2] == n[2] && string(b[:len(n)]) == n {
			return len(n)
		}
	}
	return 0
}

// A link is how a noun and the word behind it belong together.
type link uint8

const (
	apart   link = iota // only a space is between
	is                  // "is" and the like
	becomes             // "to"
)

// linkOf returns what the start of w says of the noun before it, and how long
// that is.
func linkOf(w []byte) (link, int) {
	if len(w) > 0 && w[0] >= 0xE0 {
		for _, l := range [...]string{"是", "为", "為", "は", "として", "：", "＝", "는", "은", "คือ", "：", "—", "–", "→", "›", "❯", "▸", "가", "이"} {
			if bytes.HasPrefix(w, []byte(l)) {
				return is, len(l)
			}
		}
	}
	switch string(w) {
	case "is", "was", "remains", "became", "equals", "is:", "was:", "will", "be", "should", "must", "are", "are:", "=>", "->", "<-", ":", "-", "ist", "lautet", "war", "est", "es", "é", "è", "e'", "jest", "to:", "brzmi", "·", "»",
		"je", "är", "er", "on", "это", "là", "adalah", "είναι", "هي", "هو", "yra", "heißt", "luidt", "c'est", "c’est", "היא", "הוא", "є", "ist:", "est:", "es:", "era", "été":
		return is, len(w)
	case "to", "into", "auf", "a", "en":
		return becomes, len(w)
	}
	return apart, 0
}

// isPolish reports whether "to" behind the noun w means "is".
func isPolish(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "hasło", "haslo":
		return true
	}
	return false
}

// isAdverb reports whether w may follow a copula and says nothing.
func isAdverb(w []byte) bool {
	switch string(w) {
	case "now", "now:", "still", "just", "simply", "currently", "always", "jetzt", "nun", "ahora", "maintenant", "agora", "literally", "apparently":
		return true
	}
	return false
}

// isOf reports whether w is between a noun and what it is of.
func isOf(w []byte) bool {
	switch string(w) {
	case "for", "of", "on", "to", "between", "für", "fürs", "von", "vom", "beim", "zum", "zur", "de", "del", "para", "pour", "du", "per", "voor", "van", "do", "da", "dla", "til", "для", "от", "der", "des", "la", "na", "od", "al", "di", "you", "I", "we", "they", "he", "she", "used", "needed", "mea", "saya", "của", "tôi", "μου", "بي", "الخاصة", "pentru", "від", "k", "ke", "πρόσβασης", "שלי", "של", "za", "untuk", "för", "till":
		return true
	}
	return false
}

// isDeterminer reports whether b starts with a word that a noun follows.
func isDeterminer(b []byte) bool {
	w, _, _ := bytes.Cut(b[:min(len(b), len("their "))], []byte(" "))
	switch string(w) {
	case "the", "my", "our", "your", "this", "that", "his", "her":
		return true
	}
	return false
}

// isPreposition reports whether w is before a noun that the secret follows.
func isPreposition(w []byte) bool {
	switch string(w) {
	case "with", "using", "and", "use", "Use", "mit", "con", "avec", "com", "met", "med", "und", "en", "y", "et", "e", "z", "с", "the", "as":
		return true
	}
	return false
}

// isConnective reports whether w begins another clause.
func isConnective(w []byte) bool {
	switch string(w) {
	case "and", "but", "or", "for", "on", "at", "in", "so", "please", "then", "which", "und", "für", "auf", "y", "et", "pour", "para", "to", "when", "if", "because", "since", "until", "everywhere", "yesterday", "today", "tomorrow", "now", "и", "для", "です", "입니다", "है", "है।", "است":
		return true
	}
	return false
}

// isOfCode reports whether a number behind w and "code" is one of a person.
func isOfCode(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "pin", "otp", "verification", "security", "access", "auth", "authentication", "confirmation", "recovery", "door", "gate", "alarm", "unlock", "sms", "login", "2fa", "mfa", "totp":
		return true
	}
	return false
}

// isSetter reports whether w says that something gets another value.
func isSetter(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "set", "sets", "setting", "change", "changed", "changes", "changing", "reset", "update", "updated", "make", "made", "rotate", "rotated", "setze", "ändere", "cambia", "change-le", "modifie", "altere":
		return true
	}
	return false
}

// isOfQuestion reports whether w may be of a question whose answer is a secret.
func isOfQuestion(w []byte) bool {
	return len(w) == len("answer") && (string(w[1:]) == "nswer" || string(w) == "maiden")
}

// isUse reports whether w says that something is used or typed.
func isUse(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "use", "uses", "used", "using", "try", "enter", "type", "set", "choose", "pick", "put", "have",
		"utilise", "utilisez", "utiliser", "usa", "usar", "utiliza", "nutze", "verwende", "benutze", "nimm", "gebruik", "använd", "brug", "bruk", "użyj", "použij", "použi", "используй", "используйте", "χρησιμοποίησε", "gunakan", "dùng", "folosește", "foloseste", "koristi", "uporabi":
		return true
	}
	return isWith(w)
}

// isWith reports whether w is between a user and the secret: use ann with SECRET as password.
func isWith(w []byte) bool {
	switch string(w) {
	case "with", "avec", "con", "com", "mit", "met", "med", "z", "ze", "s", "se", "с", "με", "dengan", "với", "cu":
		return true
	}
	return false
}

// isReport reports whether a number behind w and "code" is none of a person.
func isReport(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "error", "exit", "status", "response", "http", "return", "country", "zip", "postal", "area", "reason", "result", "source", "sqlstate", "key", "event", "gpio", "header", "qr", "currency", "product":
		return true
	}
	return false
}

// isOrdinaryKey reports whether w, behind before, is a key of a map, of a table or
// of a keyboard.
func isOrdinaryKey(w, before []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "key", "clave", "ключ":
	default:
		return false
	}
	switch string(lowered(&buf, before)) {
	case "api", "access", "secret", "private", "encryption", "signing", "license", "licence", "master", "service", "my", "admin", "activation", "recovery", "openai", "stripe", "ssh", "shared":
		return false
	}
	return true
}

// IsUser reports whether w is the label of a user's name.
func IsUser(w []byte) bool {
	var buf [24]byte
	switch string(lowered(&buf, w)) {
	case "user", "username", "user name", "user_name", "login", "email", "e-mail", "email address", "account", "benutzer", "benutzername", "usuario", "usuário", "utilisateur",
		"identifiant", "utente", "gebruiker", "gebruikersnaam", "użytkownik", "логин", "пользователь", "用户名", "ユーザー名", "ユーザー", "사용자":
		return true
	}
	return false
}

// IsPlain reports whether a sentence about a secret has w: it is none.
func IsPlain(w []byte) bool {
	var buf [24]byte
	lower := lowered(&buf, w)
	if len(lower) == 0 {
		return false
	}
	if isPlainWord(lower) {
		return true
	}
	return isDerived(lower)
}

// IsLabel reports whether a program shows b in a form, in whatever language: "Forgot
// password?", "密码". A password of one word in ASCII may be one of these.
func IsLabel(b []byte) bool {
	if len(b) > maxLabel {
		return false
	}
	rest := bytes.Trim(b, "?!.: ")
	if bytes.IndexByte(rest, ' ') < 0 && utf8.RuneCount(rest) == len(rest) {
		return false // as most values are
	}
	nouns, words, foreign := 0, 0, false
	for ; len(rest) > 0; words++ {
		var w []byte
		w, rest, _ = bytes.Cut(rest, []byte(" "))
		foreign = foreign || utf8.RuneCount(w) < len(w)
		var buf [24]byte
		var spaced [len(buf) + len(" ")]byte
		switch lower := lowered(&buf, bytes.TrimSuffix(w, []byte("s"))); {
		case nounOf(lower) == password:
			nouns++
		case len(lower) == 0 || !IsPlain(w) && !strings.Contains(labelWords, string(append(append(spaced[:0], lower...), ' '))):
			return false
		}
	}
	return nouns > 0 && (words > 1 || foreign)
}

// maxLabel is how long a label is at most, in bytes.
const maxLabel = 80

// labelWords are more words of labels than IsPlain knows, with a space behind each.
const labelWords = "mot de la tu su ihr neue enter confirm repeat show vergessen ändern wiederholen oublié olvidaste cambiar "

// isDerived reports whether a word ends as adjectives, participles and abstract
// nouns do: "encrypted", "expiring", "guessable", "optional", "case-sensitive".
func isDerived(w []byte) bool {
	var ends []string
	switch w[len(w)-1] {
	case 'a':
		ends = endings[0]
	case 'd', 'g':
		ends = endings[1]
	case 'e':
		ends = endings[2]
	case 'l', 'm', 'n', 'o':
		ends = endings[3]
	case 's', 't', 'y':
		ends = endings[4]
	case 'h', 'r', '\xA9': // "é"
		ends = endings[5]
	}
	for _, end := range ends {
		if len(w) >= len(end)+3 && string(w[len(w)-len(end):]) == end {
			return bytes.IndexByte(w, '_') < 0 && !bytes.ContainsAny(w, "0123456789")
		}
	}
	return false
}

// endings are those of such words, by their last letters.
var endings = [...][]string{
	{"ada", "ida"},
	{"ed", "ing", "ung"},
	{"able", "ible", "itive"},
	{"ional", "ism", "ation", "ción", "ção", "ado", "ido"},
	{"less", "ous", "ness", "ent", "ant", "ment", "keit", "ary", "ory", "ely", "ally", "tly"},
	{"lich", "bar", "ité"},
}

// isPlainWord reports whether w is one of plainWords.
func isPlainWord(w []byte) bool { return plainTable().List(lex.View(w)) > 0 }

// plainTable is made for the first sentence.
var plainTable = sync.OnceValue(func() *wordlist.Table { return wordlist.New(plainWords) })

// plainWords are the words that IsPlain knows.
const plainWords = "" +
	// Words of grammar.
	"itself themselves himself herself myself yourself a an the this that these those it its they them their he she his her we our you your my mine yours ours i me is are was were be been being am has have " +
	"had do does did done will would shall should can could may might must cannot can't isn't doesn't won't don't wasn't not no nor never yes and or but if " +
	"so then than as because since while until unless though although also too very just only even still again already always often soon now here there " +
	"where when why how what which who whose in on at to of for from with without by via per into onto over under above below between through about after " +
	"before during against within inside outside behind near up down out off back away around along across all any some each every both either neither none " +
	"nothing something anything everything one two three four five six eight ten twelve once twice first last next same other another such own more most " +
	"less least much many few several enough likely else maybe perhaps contain contains include includes match matches please thanks however therefore instead otherwise together yet " +
	// What a secret can be, or somebody can do with it.
	"wrong incorrect correct right valid invalid weak strong short long shorter longer empty blank missing set unset reset new old current previous default " +
	"random secure insecure secret private public safe unsafe known unknown unique common simple easy hard complex good bad better fine ok okay ready true " +
	"false null nil undefined plain plaintext clear cleartext raw hash hashes salt visible hidden hide masked stale fresh active inactive free optional " +
	"mandatory necessary external internal local remote global shared sensitive case special static dynamic numeric alphanumeric live dead lost gone due " +
	"open closed kept sent read write written given taken stolen broken forgotten found held put typed shown seen left made built bound meant worth like " +
	"unlike different equal identical irrelevant important critical temporary permanent original final full half partial whole single double minimum " +
	"maximum min max average encryption complexity aging lifetime requirements limits hygiene properties level syntax semantics scanner detection box textbox " +
	// What is about secrets.
	"expire expires password passwords passphrase passwd pwd passcode token tokens secrets key keys pin pins code codes credential credentials creds login " +
	"logins username usernames user users operator guest viewer visitor editor email account accounts name names auth oauth sso saml ldap kerberos mfa otp " +
	"totp cookie cookies session sessions manager managers policy policies field fields prompt prompts form forms page pages file files hashing rotation " +
	"expiry entry entries input inputs value values string strings length character characters letters digits symbols words word text type types format " +
	"formats protection strength check checks checker change changes recovery generator store storage database db server servers service services client " +
	"clients api apis app apps variable variables env environment config settings setting option options flag flags argument arguments parameter parameters " +
	"used ends begins starts header headers body request requests response reuse login-only hint hints rules rule required vault keychain keyring safe-deposit wallet stdin stdout " +
	"root admin administrator admins system mode flow grant scope spray spraying attack attacks cracking leak leaks breach breaches list lists table column " +
	"columns row line lines test tests support security access reset-link link links button submit cancel continue forgot remember error errors failure " +
	"failures success attempt attempts retry return pass break raise throw todo tbd n/a na " +
	// Times and measures.
	"today tomorrow yesterday day days hour hours minute minutes week weeks month months year years time times bits bytes daily weekly monthly yearly " +
	"annually later early late ago " +
	// German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian.
	"falsch anders prázdné richtig leer kurz lang sicher unsicher korrekt ungültig gültig nicht kein keine zu im in-der der die das ein eine geheim bekannt " +
	"unbekannt abgelaufen gesetzt geändert vergessen notwendig erforderlich neu alt schwach stark gleich dasselbe noch schon nur dort hier le la les un une " +
	"pas trop court courte vide faux fausse correcte incorrecte invalide valide requis requise obligatoire secrète expiré oublié dans sur faible fort connu " +
	"inconnu nouveau el los las muy corta corto larga largo vacía vacío incorrecta correcta incorrecto correcto inválida válida obligatoria obligatorio " +
	"secreta secreto débil segura seguro nueva nuevo aquí en con por necesaria o os muito curta vazia errada correta incorreta fraca obrigatória nova não " +
	"il lo gli troppo breve vuota sbagliata errata corretta obbligatoria debole sicura scaduta nuova non nel nella het een niet fout juist onjuist " +
	"verplicht veilig verlopen kort leeg nieuw nie jest puste błędne nieprawidłowe wymagane za неверный неправильный верный пустой обязателен не истек " +
	"истёк слишком короткий новый старый изменен изменён нужен в на greșită gresita incorectă corectă obligatorie prea scurtă expirată invalidă nevalidă slabă goală necesară napačno pravilno prekratko obvezno neteisingas privalomas " +
	"trumpas rangt שגויה נכונה חובה خاطئة صحيحة مطلوبة गलत सही आवश्यक 错误 正确 必填 不能为空 空 必须 无效 过期 已过期 正しくありません 必須 無効 필수 잘못되었습니다 "

// IsStop reports whether b starts with a full stop, a comma or the like of Asia.
func IsStop(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	switch string(b[:3]) {
	case "。", "，", "、", "；", "！", "？", "）":
		return true
	}
	return false
}
