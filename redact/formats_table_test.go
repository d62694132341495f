package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
)

// A leakRule is one rule of gitleaks with the samples that its generator makes.
type leakRule struct {
	Rule      string
	Regexp    string
	Keywords  []string
	Published []string // not secrets: the rule's allowlist, where it lists whole strings
	Positive  []struct {
		Text    string
		Secrets []string
	}
	Negative []string
}

// leakRules reads testdata/gitleaks.json.gz, which gitleaks/main.go writes. It
// is compressed so that no scanner of repositories reports it.
func leakRules(t testing.TB) []leakRule {
	t.Helper()
	b, err := os.ReadFile("testdata/gitleaks.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var all []leakRule
	for d := json.NewDecoder(z); d.More(); {
		var r leakRule
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// otherwise are rules that are not a format of a token: the project's own code
// for names, commands and manifests replaces them.
var otherwise = []string{"curl-auth-header", "curl-auth-user", "freemius-secret-key", "generic-api-key", "kubernetes-secret-yaml", "nuget-config-password", "pkcs12-file", "microsoft-teams-webhook", "private-key", "sidekiq-sensitive-url", "slack-webhook-url"}

// ownFormats are formats that gitleaks does not have, or has more strictly.
var ownFormats = []leakRule{
	{Rule: "github", Regexp: `gh[pousr]_[\w.-]{16}`}, {Rule: "github-pat", Regexp: `github_pat_[\w.-]{16}`},
	{Rule: "gitlab", Regexp: `gl(?:pat|dt|rt)-[\w.-]{12}`}, {Rule: "slack", Regexp: `xox[abceoprsd]-[\w.-]{10}`}, {Rule: "slack-app", Regexp: `xapp-[\w.-]{10}`},
	{Rule: "anthropic", Regexp: `sk-ant-[\w.-]{10}`}, {Rule: "openai", Regexp: `\bsk-[\w.-]{16}`}, {Rule: "stripe", Regexp: `\b[sr]k_(?:live|test|prod)_[\w.-]{10}`},
	{Rule: "stripe-webhook", Regexp: `whsec_[\w.-]{16}`}, {Rule: "npm", Regexp: `npm_[\w.-]{20}`}, {Rule: "pypi", Regexp: `pypi-[\w.-]{16}`},
	{Rule: "sendgrid", Regexp: `\bSG\.[\w.-]{16}`}, {Rule: "digitalocean", Regexp: `dop_v1_[\w.-]{20}`},
	{Rule: "google", Regexp: `AIza[\w-]{30}`}, {Rule: "aws-key-id", Regexp: `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}`},
	{Rule: "discord-webhook", Regexp: `discord(?:app)?\.com/api/webhooks/[\w/-]{18}`}, {Rule: "slack-webhook", Regexp: `hooks\.slack\.com/[\w/+-]{10}`},
	{Rule: "teams-webhook", Regexp: `\.webhook\.office\.com/[\w/@+-]{20}`}, {Rule: "airtable", Regexp: `\bpat[A-Za-z0-9]{14}\.[a-f0-9]{20}`}, {Rule: "telegram", Regexp: `[0-9]{8,12}:AA[\w-]{30}`},

	// Hashes of passwords, which are guessed at leisure: crypt(5), LDAP (RFC 2307), Django, PostgreSQL, Windows.
	{Rule: "crypt-md5", Regexp: `\$(?:1|apr1)\$[\w./$]{23}`}, {Rule: "crypt-sha", Regexp: `\$[56]\$[\w./=$]{26}`},
	{Rule: "bcrypt", Regexp: `\$2(?:a|b|x|y)\$[\w./$]{30}`}, {Rule: "crypt-yescrypt", Regexp: `\$(?:y|gy|7)\$[\w./$]{22}`},
	{Rule: "crypt-argon2", Regexp: `\$argon2(?:id|i|d)\$[\w./+=,$-]{40}`}, {Rule: "crypt-named", Regexp: `\$(?:scrypt|pbkdf2|bcrypt-sha256)[\w./+=,$-]{40}`},
	{Rule: "phpass", Regexp: `\$[PH]\$[\w./]{26}`}, {Rule: "ldap-hash", Regexp: `\{(?:MD5|SMD5|SHA|SSHA|SHA256|SSHA256|SHA384|SSHA384|SHA512|SSHA512)\}[\w/+=]{24}`}, {Rule: "ldap-crypt", Regexp: `\{(?:CRYPT|crypt)\}[\w./$]{13}`},
	{Rule: "django-hash", Regexp: `(?:pbkdf2_sha256|pbkdf2_sha1|bcrypt_sha256|argon2)\$[\w./+=,$-]{40}`}, {Rule: "scram", Regexp: `SCRAM-SHA-(?:1|256|512)\$[\w./+=,:$-]{60}`},
	{Rule: "crypt-cisco", Regexp: `\$[89]\$[\w./]{10,14}\$[\w./]{43}`}, {Rule: "ldap-lower", Regexp: `\{(?:ssha1|ssha256|ssha512|smd5|PKCS5S2|PBKDF2_SHA256|CRAM-MD5)\}[\w./+=$]{24}`},
	{Rule: "kerberos", Regexp: `krb5(?:tgs|asrep|pa|db)\$[\w*$./:@+=-]{40}`}, {Rule: "cached", Regexp: `(?:DCC2|DPAPImk|sshng|ansible|mozilla|keychain|bitwarden|SNMPv3|mysql|mysqlna|mongodb-scram)\$[\w*$./:@+=#-]{40}`},
	{Rule: "document", Regexp: `(?:office|oldoffice|odf|pdf|zip2|pkzip2|7z|rar5|RAR3|keepass|gpg|axcrypt)\$[\w*$./:@+=-]{40}`}, {Rule: "wallet", Regexp: `(?:bitcoin|ethereum|electrum|multibit|blockchain|metamask|dogechain|stellar)\$[\w*$./:@+=-]{40}`},
	{Rule: "disk", Regexp: `(?:luks|veracrypt|truecrypt|bitlocker|fvde|fde|vmx|vbox|itunes_backup)\$[\w*$./:@+=-]{40}`},
	{Rule: "windows-hash", Regexp: `aad3b435b51404eeaad3b435b51404ee:[a-fA-F0-9]{32}`},

	// Tokens of services that gitleaks has not, or only behind a name.
	{Rule: "1password", Regexp: `ops_eyJ[\w-]{40}`}, {Rule: "alchemy", Regexp: `alcht_[A-Za-z0-9]{30}`}, {Rule: "apify", Regexp: `apify_api_[A-Za-z0-9]{30}`},
	{Rule: "atlassian", Regexp: `AT(?:ATT|CTT)3xF[\w=-]{30}`}, {Rule: "bitbucket", Regexp: `\b(?:ATBB[A-Za-z0-9]{24}|BBDC-[\w+/=-]{40})`},
	{Rule: "azure", Regexp: `[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20}`}, {Rule: "azure-devops", Regexp: `[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}`},
	{Rule: "azure-storage", Regexp: `[\w+/]{76}\+ASt[\w+/=]{6}`}, {Rule: "azure-service", Regexp: `[\w+/]{36}(?:AzSe|AzFu|ACDb|\+ACR|AIoT)[\w+/=]{6}`},
	{Rule: "bedrock", Regexp: `bedrock-api-key-[\w+/=-]{20}`}, {Rule: "braintree", Regexp: `access_token\$(?:production|sandbox)\$[\w$]{40}`},
	{Rule: "buildkite", Regexp: `\bbk(?:ua|aj|pt|ct|at)_[a-f0-9]{32}`}, {Rule: "cloudflare", Regexp: `\bcf(?:k|at|ut)_[A-Za-z0-9]{40}`},
	{Rule: "contentful", Regexp: `CFPAT-[\w-]{40}`}, {Rule: "cosmo", Regexp: `\bcosmo_[a-f0-9]{32}`}, {Rule: "defined-networking", Regexp: `\bdnkey-[\w-]{26}`},
	{Rule: "dependency-track", Regexp: `\bodt_[A-Za-z0-9]{30}`}, {Rule: "docker", Regexp: `dckr_(?:pat|oat)_[\w-]{20}`}, {Rule: "docker-swarm", Regexp: `SWM(?:TKN-1|KEY-1)-[\w+/-]{40}`},
	{Rule: "doppler", Regexp: `\bdp\.(?:ct|st|sa|scim|audit)\.[\w.-]{40}`}, {Rule: "dropbox", Regexp: `\bsl\.[\w-]{60}`}, {Rule: "e2b", Regexp: `\be2b_[a-f0-9]{40}`},
	{Rule: "elevenlabs", Regexp: `\bsk_[a-f0-9]{40}`}, {Rule: "figma", Regexp: `\bfigd_[\w-]{30}`}, {Rule: "firecrawl", Regexp: `\bfc-[a-f0-9]{32}`}, {Rule: "fleetbase", Regexp: `flb_live_[A-Za-z0-9]{20}`},
	{Rule: "gitlab-more", Regexp: `\bgl(?:cbt|ptt|wt|ft|imt|soat|oas|agent|rtr)-[\w.-]{20}`}, {Rule: "google-access", Regexp: `\bya29\.[\w-]{30}`},
	{Rule: "google-refresh", Regexp: `\b1//0[\w-]{40}`}, {Rule: "google-client", Regexp: `GOCSPX-[\w-]{24}`}, {Rule: "groq", Regexp: `\bgsk_[A-Za-z0-9]{40}`},
	{Rule: "heroku", Regexp: `HRKU-[\w-]{30}`}, {Rule: "hubspot", Regexp: `\bpat-(?:na1|na2|na3|eu1|ap1)-[a-f0-9-]{36}`}, {Rule: "instagram", Regexp: `IGQV[\w-]{60}`}, {Rule: "ionic", Regexp: `\bion_[A-Za-z0-9]{40}`},
	{Rule: "jina", Regexp: `\bjina_[\w-]{40}`}, {Rule: "langsmith", Regexp: `\blsv2_(?:pt|sk)_[\w-]{40}`}, {Rule: "llama-cloud", Regexp: `\bllx-[\w-]{40}`},
	{Rule: "minisign", Regexp: `RWRTY0Iy[\w+/=]{60}`}, {Rule: "mailchimp", Regexp: `\b[a-f0-9]{32}-us[0-9]{1,2}`}, {Rule: "mailgun", Regexp: `\bkey-[a-f0-9]{32}`}, {Rule: "neon", Regexp: `\bnapi_[a-z0-9]{50}`}, {Rule: "netlify", Regexp: `\bnfp_[A-Za-z0-9]{30}`},
	{Rule: "newrelic", Regexp: `\bNR(?:AA|RA|BR|II|IQ|SP|AK)-[\w-]{18}`}, {Rule: "newrelic-licence", Regexp: `[a-f0-9x]{32}FFFFNRAL`}, {Rule: "newrelic-ingest", Regexp: `[a-f0-9x]{36}NRAL`},
	{Rule: "ntlm", Regexp: `TlRMTVNTUAAD[\w+/=]{60}`}, {Rule: "nuget", Regexp: `\boy2[a-z0-9]{43}`}, {Rule: "nvidia", Regexp: `\bnvapi-[\w-]{40}`}, {Rule: "pinecone", Regexp: `\bpcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50}`},
	{Rule: "posthog", Regexp: `\bph[sarx]_[A-Za-z0-9]{40}`}, {Rule: "postman", Regexp: `\bPMAT-[A-Z0-9]{26}`}, {Rule: "replicate", Regexp: `\br8_[A-Za-z0-9]{32}`}, {Rule: "rootly", Regexp: `\brootly_[a-f0-9]{64}`},
	{Rule: "salesforce", Regexp: `\b00D[\w.!]{90}`}, {Rule: "shopify", Regexp: `shp(?:at|ca|pa|ss)_[A-Za-z0-9]{32}`}, {Rule: "sonarqube", Regexp: `\bsq[apu]_[a-f0-9]{40}`}, {Rule: "sourcegraph", Regexp: `\b(?:sgp|slk)_[A-Za-z0-9]{40}`},
	{Rule: "spectral", Regexp: `\bspu-[a-f0-9]{32}`}, {Rule: "square", Regexp: `\bsq0csp-[\w-]{30}`}, {Rule: "supabase", Regexp: `\bsbp_(?:v0_)?[a-f0-9]{40}`}, {Rule: "supabase-secret", Regexp: `\bsb_secret_[\w-]{20}`},
	{Rule: "tailscale", Regexp: `\btskey-(?:auth|api|client|scim|webhook|secret)-[\w-]{12}`}, {Rule: "tavily", Regexp: `\btvly-[\w-]{30}`}, {Rule: "teamwork", Regexp: `\btkn\.v1_[\w-]{40}`}, {Rule: "together", Regexp: `\btgp_v1_[\w-]{40}`},
	{Rule: "typeform", Regexp: `\btfp_[\w.-]{40}`}, {Rule: "ubidots", Regexp: `\bBBFF-[A-Za-z0-9]{30}`}, {Rule: "vercel", Regexp: `\bvc[piark]_[A-Za-z0-9]{30}`}, {Rule: "voiceflow", Regexp: `\bVF\.(?:DM|WS)\.[\w.-]{30}`},
	{Rule: "age-plugin", Regexp: `AGE-PLUGIN-[A-Z0-9-]{30}`}, {Rule: "dpapi", Regexp: `01000000d08c9ddf0115d111[a-fA-F0-9]{40}`}, {Rule: "dpapi-base64", Regexp: `AQAAANCMnd8BFdERjHoA[\w+/=]{40}`},
	{Rule: "extended-key", Regexp: `\b(?:xprv|yprv|zprv|tprv|uprv|vprv)[A-Za-z0-9]{100}`}, {Rule: "junos", Regexp: `\$9\$[\w./-]{10}`}, {Rule: "kerberos-ticket", Regexp: `\bdoI[A-Za-z0-9+/]{120}`},
	{Rule: "macaroon", Regexp: `MDA[A-Za-z0-9]{2}2xvY2F0aW9u[\w+/=-]{40}`}, {Rule: "nostr", Regexp: `\bnsec1[a-z0-9]{58}`}, {Rule: "ory", Regexp: `\bory_(?:at|rt|st|pat|wak)_[\w.-]{30}`},
	{Rule: "otpauth-migration", Regexp: `otpauth-migration://offline\?data=[\w%+/=-]{20}`}, {Rule: "paseto", Regexp: `\bv[1-4]\.(?:local|public)\.[\w-]{40}`}, {Rule: "postgresql-md5", Regexp: `\bmd5[a-f0-9]{32}`},
	{Rule: "browserbase", Regexp: `\bbb_live_[\w-]{24}`}, {Rule: "brave", Regexp: `\bBSA[\w-]{28}`}, {Rule: "cal", Regexp: `\bcal_live_[a-f0-9]{32}`}, {Rule: "cerebras", Regexp: `\bcsk-[a-z0-9]{40}`},
	{Rule: "context7", Regexp: `\bctx7sk-[a-f0-9-]{36}`}, {Rule: "facebook", Regexp: `\bEAA[A-Za-z0-9]{60}`}, {Rule: "fireworks", Regexp: `\bfw_[A-Za-z0-9]{22}`}, {Rule: "notion", Regexp: `\b(?:ntn|secret)_[A-Za-z0-9]{40}`},
	{Rule: "readme", Regexp: `\brdme_[a-z0-9]{60}`}, {Rule: "render", Regexp: `\brnd_[A-Za-z0-9]{26}`}, {Rule: "resend", Regexp: `\bre_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20}`}, {Rule: "sentry", Regexp: `\bsntry[su]_[\w+/=-]{40}`},
	{Rule: "vercel-blob", Regexp: `vercel_blob_rw_[\w-]{30}`},
	{Rule: "sui", Regexp: `\bsuiprivkey1[a-z0-9]{50}`},
	{Rule: "xai", Regexp: `\bxai-[A-Za-z0-9]{60}`}, {Rule: "zoho", Regexp: `\b1000\.[a-f0-9]{32}\.[a-f0-9]{32}`},
}

// wordy are formats that words of English and of programs match: a digit must
// be in them.
var wordy = []string{"openai", "pypi", "slack", "slack-app", "vault-service-token", "grafana-cloud-api-token"}

// A shape is one way to read a regular expression: the characters of each
// place.
type shape []place2

type place2 struct {
	set      lex.ByteSet
	min, max int
	bound    bool // no place: a boundary of words
}

const unbounded = 1000

// shapes flattens a regular expression; alternatives give one shape each, as
// long as they are few.
func shapes(re *syntax.Regexp) []shape {
	switch re.Op {
	case syntax.OpLiteral:
		var s shape
		for _, r := range re.Rune {
			p := place2{min: 1, max: 1}
			p.add(r)
			if re.Flags&syntax.FoldCase != 0 {
				p.add(foldCase(r))
			}
			s = append(s, p)
		}
		return []shape{s}
	case syntax.OpCharClass:
		p := place2{min: 1, max: 1}
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && r < 128; r++ {
				p.add(r)
			}
		}
		if n := bits.OnesCount64(p.set[0]) + bits.OnesCount64(p.set[1]); n > 2 && n <= 9 || n == 2 && !p.folds() {
			var all []shape
			for r := rune(0); r < 128; r++ {
				if p.set.Has(byte(r)) {
					one := place2{min: 1, max: 1}
					one.add(r)
					all = append(all, shape{one})
				}
			}
			return all
		}
		return []shape{{p}}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		p := place2{min: 1, max: 1}
		for r := rune(' '); r < 127; r++ {
			p.add(r)
		}
		return []shape{{p}}
	case syntax.OpCapture:
		return shapes(re.Sub[0])
	case syntax.OpConcat:
		all := []shape{nil}
		for _, sub := range re.Sub {
			var next []shape
			for _, tail := range shapes(sub) {
				for _, head := range all {
					next = append(next, slices.Concat(head, tail))
				}
			}
			if len(next) > 64 {
				next = []shape{slices.Concat(all[0], shape{union(shapes(sub))})}
			}
			all = next
		}
		return all
	case syntax.OpAlternate:
		var all []shape
		for _, sub := range re.Sub {
			all = append(all, shapes(sub)...)
		}
		return all
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			least, most = 0, -1
		case syntax.OpPlus:
			least, most = 1, -1
		case syntax.OpQuest:
			least, most = 0, 1
		}
		p := union(shapes(re.Sub[0]))
		p.min *= least
		if most < 0 {
			most = unbounded
		}
		p.max = min(p.max*most, unbounded)
		return []shape{{p}}
	case syntax.OpWordBoundary:
		return []shape{{{bound: true}}}
	}
	return []shape{nil}
}

func foldCase(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 32
	}
	if 'A' <= r && r <= 'Z' {
		return r + 32
	}
	return r
}

func (p *place2) add(r rune) {
	if r < 128 {
		p.set[r>>6] |= 1 << (r & 63)
	}
}

func (p place2) folds() bool {
	_, both, _ := p.letter()
	return both
}

// union is one place that holds the characters of any of the shapes.
func union(all []shape) place2 {
	p := place2{min: math.MaxInt}
	for _, s := range all {
		least, most := 0, 0
		for _, q := range s {
			if q.bound {
				continue
			}
			p.set[0] |= q.set[0]
			p.set[1] |= q.set[1]
			least, most = least+q.min, most+q.max
		}
		p.min, p.max = min(p.min, least), max(p.max, most)
	}
	if len(all) == 0 {
		p.min = 0
	}
	return p
}

// letter returns the place's character if it is only one, in one or both cases.
func (p place2) letter() (c byte, folds, ok bool) {
	if p.bound || p.min != 1 || p.max != 1 {
		return 0, false, false
	}
	n := 0
	for r := byte(0); r < 128; r++ {
		if p.set.Has(r) {
			n++
			c = r
		}
	}
	switch {
	case n == 1:
		return c, false, true
	case n == 2 && foldCase(rune(c)) != rune(c) && p.set.Has(byte(foldCase(rune(c)))):
		return c | 0x20, true, true
	}
	return 0, false, false
}

// A reduced format is a Format before its word and sets have numbers.
type reduced struct {
	formats.Format
	name          string
	word          string
	before, after lex.ByteSet
}

const (
	operatorPart = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`
	endPart      = `(?:[\x60'"\s;]|\\[nr]|$)`
	fencePart    = `(?:^|[\\'"\x60\s>=:(,)])` // before a credential
)

// endParts are the rules' ends of a credential.
var endParts = []string{endPart, `(?:$|[\\'"\x60\s<),])`, `(?:[^\w-]|\z)`, `(?:[^a-zA-Z0-9+/]|\z)`, `(?:[\x60'"\s;]|\\[nr]|$|\b)`, `\b`}

// reduce makes formats of a rule.
func reduce(t *testing.T, r leakRule) []reduced {
	t.Helper()
	var all []reduced
	source := r.Regexp
	if head, value, ok := strings.Cut(source, operatorPart); ok {
		value, rest, _ := strings.Cut(value, endPart)
		flags := ""
		if strings.HasPrefix(head, "(?i)") {
			flags = "(?i)"
		}
		re, err := syntax.Parse(flags+value, syntax.Perl)
		if err != nil {
			t.Fatalf("%s: %v", r.Rule, err)
		}
		for _, word := range r.Keywords {
			// A rule whose keyword is in its value has its name in the value too.
			plain := strings.NewReplacer("[_-]?", "", "-", "", "_", "")
			if !strings.Contains(plain.Replace(strings.ToLower(head)), plain.Replace(strings.ToLower(word))) {
				continue
			}
			p := union(shapes(re))
			f := reduced{name: r.Rule, word: strings.ToLower(word), after: p.set}
			f.Humped = !strings.Contains(head, "(?-i:")
			f.Assigned, f.MinAfter, f.MaxAfter = true, uint16(p.min), uint16(min(p.max, unbounded))
			all = append(all, f)
		}
		if len(all) == 0 { // new-relic: its value alone identifies it
			all = append(all, reduce(t, leakRule{Rule: r.Rule, Regexp: flags + value})...)
		}
		if strings.HasPrefix(rest, "|") {
			all = append(all, reduce(t, leakRule{Rule: r.Rule, Regexp: rest[1:]})...)
		}
		return all
	}
	ends := strings.Contains(source, endPart)
	source = strings.ReplaceAll(source, endPart, "")
	for _, end := range endParts {
		if rest, ok := strings.CutSuffix(source, end); ok {
			source, ends = rest, true
		}
	}
	source, fenced := strings.CutPrefix(source, fencePart)
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", r.Rule, err)
	}
	for _, s := range shapes(re) {
		if f, ok := around(s); ok {
			f.name = r.Rule
			f.Digit = slices.Contains(wordy, r.Rule)
			f.Alone = f.Alone || fenced
			if !ends {
				f.MaxAfter = math.MaxUint16
			}
			all = append(all, f)
		}
	}
	return all
}

// around reduces a shape to its longest word and the places around that.
func around(s shape) (f reduced, ok bool) {
	var best, at int
	for i := range s {
		n := 0
		for i+n < len(s) {
			if _, _, ok := s[i+n].letter(); !ok {
				break
			}
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	if c, _, _ := s[at].letter(); best == 0 || best < 2 && lex.Classes[c]&lex.IsName != 0 {
		return f, false
	}
	folds := false
	var literal []byte
	for _, p := range s[at : at+best] {
		c, both, _ := p.letter()
		folds = folds || both
		literal = append(literal, c)
	}
	f.word = strings.ToLower(string(literal))
	if !folds {
		f.Literal = string(literal)
	}
	before, after := union([]shape{s[:at]}), union([]shape{s[at+best:]})
	f.Behind = strings.Contains(f.word, ".com") // the address of a webhook stays
	f.before, f.MinBefore, f.MaxBefore = before.set, uint16(before.min), uint16(min(before.max, 400))
	f.after, f.MinAfter = after.set, uint16(after.min)
	f.MaxAfter = uint16(min(after.max, unbounded))
	f.Alone = at > 0 && s[at-1].bound || at == 1 && s[0].bound
	return f, true
}

// writeFormats writes the automaton of the words of formats, and the table of
// formats.
func writeFormats(t *testing.T, automaton, b *bytes.Buffer) {
	var all []reduced
	for _, r := range slices.Concat(leakRules(t), ownFormats) {
		if slices.Contains(otherwise, r.Rule) {
			continue
		}
		made := reduce(t, r)
		if len(made) == 0 {
			t.Errorf("%s gives no format: %s", r.Rule, r.Regexp)
		}
		all = append(all, made...)
	}
	slices.SortStableFunc(all, func(a, b reduced) int { return strings.Compare(a.word, b.word) })
	var words []string
	var first []uint16
	var sizes []byte
	var sets []lex.ByteSet
	number := func(s lex.ByteSet) int {
		if i := slices.Index(sets, s); i >= 0 {
			return i
		}
		sets = append(sets, s)
		return len(sets) - 1
	}
	var rows strings.Builder
	kept := 0
	seen := map[string]bool{}
	for _, f := range all {
		row := fmt.Sprintf("Literal: %q, Before: %d, After: %d, MinBefore: %d, MaxBefore: %d, MinAfter: %d, MaxAfter: %d, Alone: %t, Behind: %t, Digit: %t, Assigned: %t, Humped: %t",
			f.Literal, number(f.before), number(f.after), f.MinBefore, f.MaxBefore, f.MinAfter, f.MaxAfter, f.Alone, f.Behind, f.Digit, f.Assigned, f.Humped)
		if seen[f.word+row] {
			continue
		}
		seen[f.word+row] = true
		if len(words) == 0 || words[len(words)-1] != f.word {
			words = append(words, f.word)
			first = append(first, uint16(kept))
			sizes = append(sizes, byte(len(f.word)))
		}
		fmt.Fprintf(&rows, "{%s}, // %s\n", row, f.name)
		kept++
	}
	first = append(first, uint16(kept))
	fmt.Fprintf(automaton, "// Words are the words of formats, in any case.\n")
	writeAutomaton(automaton, "Words", words)
	fmt.Fprintf(b, "// By word of Words: its size.\nconst sizes = %s\n\n// First has, by word of Words, its first one of Formats; one more at the end.\nvar First = [...]uint16{%s}\n\n", quote(sizes), numbers(first))
	fmt.Fprintf(b, "// Sets are the sets of bytes of Formats.\nvar Sets = [...]lex.ByteSet{\n")
	for _, s := range sets {
		fmt.Fprintf(b, "{%#x, %#x},\n", s[0], s[1])
	}
	fmt.Fprintf(b, "}\n\n// published are strings that look like credentials and are known not to be,\n// from PublishedAt on: as a whole, scanners of repositories would find them.\nvar published = [...]string{\n")
	for _, r := range leakRules(t) {
		for _, p := range r.Published {
			fmt.Fprintf(b, "%q,\n", p[formats.PublishedAt:])
		}
	}
	fmt.Fprintf(b, "}\n\n// Formats are in the order of Words.\nvar Formats = [...]Format{\n%s}\n", rows.String())
}
