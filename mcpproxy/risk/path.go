package risk

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath is the longest path that is looked at component by component, in
// bytes; systems have 4096.
const maxPath = 8 << 10

// maxLinks is the number of symbolic links that are followed, as in Linux.
const maxLinks = 40

// A place is where a server runs, as far as it is known, and what is sensitive
// there.
type place struct {
	home, cwd []string // components; nil if unknown
	own       [][]string
	sensitive []sensitivePath
	readlink  func(string) (string, bool)
}

// A sensitivePath is an operator's entry.
type sensitivePath struct {
	parts    []string // patterns of path.Match, folded
	absolute bool     // from the root, else anywhere
	home     bool     // from the home directory
}

// A pathBuffer is memory that is used again.
type pathBuffer struct{ parts, clean, folded []string }

func (b *pathBuffer) clear() {
	if len(b.parts) == 0 {
		return // not used
	}
	for _, list := range [...]*[]string{&b.parts, &b.clean, &b.folded} {
		if cap(*list) > maxParts {
			*list = nil
		}
		clear((*list)[:cap(*list)])
		*list = (*list)[:0]
	}
}

// maxParts is the number of components that are resolved on disk.
const maxParts = 256

// detectPath returns what a path, or a URI with the scheme file, is.
func (p *place) detectPath(s string, b *pathBuffer) (found Detectors) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0
	}
	if len(s) > maxPath {
		return PathUnresolved
	}
	if rest, ok := cutFile(s); ok {
		for range 2 { // a server may decode what another part has decoded
			if file := fileURI(rest); file != "" {
				found |= p.detectPath(file, b)
			}
			if !strings.Contains(rest, "%25") {
				break
			}
			rest = unescape(rest)
		}
		return found
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		// Servers refuse it, or a part in C reads another path than they checked.
		found = PathBlocked
		s = strings.ReplaceAll(s, "\x00", "")
		if s == "" {
			return found
		}
	}
	found |= p.detect(s, b)
	if strings.IndexByte(s, '\\') >= 0 {
		found |= p.detect(strings.ReplaceAll(s, `\`, "/"), b) &^ PathUnresolved
	}
	return found
}

// cutFile cuts the scheme of a file URI.
func cutFile(s string) (rest string, ok bool) {
	const scheme = "file:"
	if len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return s, false
	}
	return s[len(scheme):], true
}

// looksLikePath reports whether a value is a path where its name does not tell.
func looksLikePath(s string) bool {
	if _, ok := cutFile(s); ok {
		return true
	}
	return strings.IndexByte(s, '/') >= 0 && !strings.Contains(s, "://") && !strings.ContainsAny(s, " \t\r\n") || s == "~"
}

// fileURI returns the path of a URI (RFC 8089) behind its scheme.
func fileURI(rest string) string {
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	if host, ok := strings.CutPrefix(rest, "//"); ok {
		// Any host: those who ignore it read the local file.
		if i := strings.IndexAny(host, `/\`); i >= 0 {
			rest = host[i:]
		} else {
			rest = "/" + host
		}
	}
	return unescape(rest)
}

// unescape decodes percent-encoding once and keeps what is not valid.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// detect judges a path as a text, and on disk where that is possible.
func (p *place) detect(s string, b *pathBuffer) (found Detectors) {
	b.parts = components(b.parts[:0], s)
	parts := b.parts
	for _, part := range parts {
		if isVariable(part) {
			found |= PathUnresolved
		}
	}
	absolute := s[0] == '/'
	base := p.cwd
	switch {
	case absolute:
		base = []string{}
	case parts[0] == "~":
		base, parts = p.home, parts[1:]
		if base == nil {
			found |= PathUnresolved
		}
	case parts[0][0] == '~':
		found |= PathUnresolved
		base, parts = nil, parts[1:]
	case base == nil:
		found |= PathUnresolved
	}
	clean, ups, popped := join(append(b.clean[:0], base...), parts)
	b.clean = clean
	if ups > 0 || popped && absolute {
		found |= PathTraversal
	}
	found |= p.lexical(clean, base != nil || ups >= rootUps, b)
	if found&PathBlocked == 0 && base != nil && p.readlink != nil && !isHarmlessDevice(clean) {
		if real, ok := p.real(base, parts); !ok {
			found |= PathUnresolved
		} else {
			found |= p.lexical(real, true, b)
		}
	}
	return found
}

// isVariable reports whether a shell would replace a component.
func isVariable(part string) bool {
	if i := strings.IndexAny(part, "$`%"); i < 0 {
		return false
	}
	if strings.Contains(part, "${") || strings.Contains(part, "$(") || strings.IndexByte(part, '`') >= 0 {
		return true
	}
	if name, ok := strings.CutPrefix(part, "%"); ok && strings.HasSuffix(name, "%") && len(name) > 1 {
		return true
	}
	name, ok := strings.CutPrefix(part, "$")
	return ok && name != "" && strings.IndexFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
}

// components appends the parts of a path between its slashes, at least one.
func components(parts []string, s string) []string {
	n := len(parts)
	for s != "" {
		part := s
		if i := strings.IndexByte(s, '/'); i >= 0 {
			part, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) == n {
		parts = append(parts, ".")
	}
	return parts
}

// rootUps is how often a path with an unknown start must go up to be taken for
// one from the root.
const rootUps = 3

// join appends parts to clean and resolves dots as texts. ups is how often the
// parts leave it, popped that they leave a directory that they entered.
func join(clean, parts []string) (_ []string, ups int, popped bool) {
	entered := 0
	for _, part := range parts {
		switch {
		case part == ".":
		case part != "..":
			clean = append(clean, part)
			entered++
		default:
			if entered > 0 {
				popped = true
				entered--
			} else {
				ups++
			}
			if len(clean) > 0 {
				clean = clean[:len(clean)-1]
			}
		}
	}
	return clean, ups, popped
}

// real resolves a path on disk, as the kernel does: component by component, each
// link where it stands. What does not exist stays as it is.
func (p *place) real(base, parts []string) (clean []string, ok bool) {
	todo := append(append(make([]string, 0, len(base)+len(parts)), base...), parts...)
	if len(todo) > maxParts {
		return nil, false
	}
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".":
			continue
		case "..":
			if len(clean) > 0 {
				clean = clean[:len(clean)-1]
			}
			continue
		}
		clean = append(clean, part)
		target, link := p.readlink("/" + strings.Join(clean, "/"))
		if !link {
			continue
		}
		if links++; links > maxLinks || target == "" || len(target) > maxPath {
			return clean, false
		}
		clean = clean[:len(clean)-1]
		if target[0] == '/' {
			clean = clean[:0]
		}
		todo = append(components(nil, target), todo...)
	}
	return clean, true
}

// lexical compares an absolute path, or one whose start is unknown.
func (p *place) lexical(parts []string, absolute bool, b *pathBuffer) (found Detectors) {
	b.folded = folded(b.folded[:0], parts)
	parts = b.folded
	if absolute {
		parts = system(parts)
		found |= blocked(parts)
		for _, own := range p.own {
			if hasPrefix(parts, own) {
				found |= PathSensitive
			}
		}
	}
	if len(parts) > 0 && found == 0 && (sensitiveAnywhere(parts) || absolute && sensitiveSystem(parts)) {
		found |= PathSensitive
	}
	for _, s := range p.sensitive {
		switch {
		case s.home && p.home != nil && absolute:
			if h := folded(nil, p.home); hasPrefix(parts, h) && matchPrefix(parts[len(h):], s.parts) {
				found |= PathSensitive
			}
		case s.absolute && absolute:
			if matchPrefix(parts, s.parts) {
				found |= PathSensitive
			}
		case !s.absolute:
			for i := range parts {
				if matchPrefix(parts[i:], s.parts) {
					found |= PathSensitive
					break
				}
			}
		}
	}
	if found&PathBlocked != 0 {
		found &^= PathSensitive
	}
	return found
}

// folded appends the parts as file systems that ignore case compare them, and
// without the invisible characters that some of them ignore too. Others would
// tell more paths apart; a path that only such a system could confuse is judged
// like the one that it could be confused with.
func folded(out, parts []string) []string {
	for _, part := range parts {
		if part = fold(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func fold(part string) string {
	for i := range len(part) {
		if part[i] >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Cf, r) {
					return -1
				}
				return unicode.ToLower(r)
			}, part)
		}
	}
	return strings.ToLower(part)
}

// system undoes the aliases that macOS has for directories of the system.
func system(parts []string) []string {
	if hasPrefix(parts, []string{"system", "volumes", "data"}) {
		parts = parts[3:]
	}
	if len(parts) > 1 && parts[0] == "private" && (parts[1] == "etc" || parts[1] == "var" || parts[1] == "tmp") {
		parts = parts[1:]
	}
	return parts
}

func hasPrefix(parts, prefix []string) bool {
	if len(prefix) == 0 || len(parts) < len(prefix) {
		return false
	}
	for i := range prefix {
		if parts[i] != prefix[i] {
			return false
		}
	}
	return true
}

// matchPrefix is hasPrefix with patterns.
func matchPrefix(parts, patterns []string) bool {
	if len(patterns) == 0 || len(parts) < len(patterns) {
		return false
	}
	for i := range patterns {
		if ok, err := path.Match(patterns[i], parts[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

// isHarmlessDevice reports whether a path is a device that programs write to as
// a matter of course.
func isHarmlessDevice(parts []string) bool {
	if len(parts) != 2 || parts[0] != "dev" {
		return false
	}
	switch parts[1] {
	case "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr":
		return true
	}
	return false
}

// blocked reports the paths that no tool has a reason to touch.
func blocked(parts []string) Detectors {
	if len(parts) == 0 {
		return 0
	}
	switch {
	case matches(parts[0], "proc"), matches(parts[0], "sys"):
		return PathBlocked
	case matches(parts[0], "dev"):
		if !isHarmlessDevice(parts) {
			return PathBlocked
		}
	case matches(parts[0], "etc") && len(parts) > 1:
		if matches(parts[1], "shadow") || matches(parts[1], "passwd") || matches(parts[1], "sudoers") {
			return PathBlocked
		}
	}
	return 0
}

// matches reports whether a component is name, or a pattern that some servers
// expand and that matches it.
func matches(part, name string) bool {
	if part == name {
		return true
	}
	if !strings.ContainsAny(part, "*?[") || strings.Trim(part, "*?") == "" {
		return false
	}
	ok, err := path.Match(part, name)
	return ok && err == nil
}

// sensitiveSystem reports absolute paths that are sensitive.
func sensitiveSystem(parts []string) bool {
	if matches(parts[0], "etc") {
		return true
	}
	for _, dir := range [...]string{
		"var/spool/cron", "var/run/docker.sock", "run/docker.sock", "var/run/secrets", "run/secrets",
		"library/launchdaemons", "library/launchagents", "lib/systemd/system", "usr/lib/systemd/system",
	} {
		if hasPath(parts, dir) {
			return true
		}
	}
	return false
}

// hasPath is hasPrefix for a prefix that is written as a path.
func hasPath(parts []string, prefix string) bool {
	for i := 0; ; i++ {
		first, rest, more := strings.Cut(prefix, "/")
		if i == len(parts) || parts[i] != first {
			return false
		}
		if !more {
			return true
		}
		prefix = rest
	}
}

// sensitiveAnywhere reports paths that are sensitive in any directory: they hold
// credentials, or something runs them later.
func sensitiveAnywhere(parts []string) bool {
	for i, part := range parts {
		switch part {
		case ".env", ".envrc", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", "_netrc", ".git-credentials", ".pgpass",
			".my.cnf", ".npmrc", ".pypirc", ".s3cfg", ".boto", ".vault-token", ".password-store", ".gcloud",
			"authorized_keys", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", ".htpasswd",
			".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
			".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
			".inputrc", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".vimrc", ".exrc", ".tmux.conf", ".screenrc",
			".gitconfig", ".dockercfg", ".pam_environment", ".rhosts", ".shosts", ".forward":
			return true
		}
		if strings.HasSuffix(part, ".git") && i+1 < len(parts) && parts[i+1] == "hooks" {
			return true
		}
		if strings.HasPrefix(part, ".env.") || strings.HasPrefix(part, ".env-") || strings.HasPrefix(part, ".env_") || part == ".env~" {
			return true
		}
		if part[0] != '.' && part != "library" {
			continue
		}
		for _, dir := range [...]string{
			".git/config", ".git/modules", ".docker/config.json", ".config/gcloud", ".config/gh", ".config/git",
			".config/fish/config.fish", ".config/fish/conf.d", ".config/autostart", ".config/systemd", ".config/rclone",
			".config/op", ".config/doctl", ".config/tmux/tmux.conf", ".config/environment.d", ".local/share/keyrings",
			".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d/credentials.tfrc.json",
			".m2/settings.xml", ".local/share/systemd", "library/keychains", "library/launchagents", "library/launchdaemons",
		} {
			if hasPath(parts[i:], dir) {
				return true
			}
		}
	}
	return false
}
