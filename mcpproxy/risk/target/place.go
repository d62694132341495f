// Package target says what a path or a URL in an argument points to.
//
// A Place is where a server runs, as far as that is known. Detect compares a path
// with lists of sensitive files and directories, component by component, after
// it resolved dots and the home directory as texts. Where a Place can read links,
// it resolves the path as the kernel does too, and both forms count. File systems
// differ in how they compare names; a path that one of them could take for a
// sensitive one is judged as that.
//
// IsPrivateURL judges hosts as they are written. No name is looked up.
//
// The files, from the top: place, list, component, address, uri.
package target

import (
	"fmt"
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/detector"
)

// maxPath is the longest path that is looked at component by component, in
// bytes; systems have 4096.
const maxPath = 8 << 10

// maxLinks is the number of symbolic links that are followed, as in Linux.
const maxLinks = 40

// A Place is where a server runs, as far as it is known, and what is sensitive
// there.
type Place struct {
	Home, Cwd []string   // see Directory; nil if unknown
	Own       [][]string // this program's files, see Own
	Sensitive []Pattern  // of the operator

	// Readlink returns the target of a symbolic link, false for anything else; nil
	// if the server has another file system.
	Readlink func(name string) (target string, ok bool)
}

// A Pattern is an operator's entry.
type Pattern struct {
	parts    []string // patterns of path.Match, folded
	absolute bool     // from the root, else anywhere
	home     bool     // from the home directory
}

// ParsePattern reads an operator's entry.
func ParsePattern(s string) (entry Pattern, err error) {
	if entry.absolute = strings.HasPrefix(s, "/"); !entry.absolute {
		if rest, ok := strings.CutPrefix(s, "~/"); ok {
			entry.home, s = true, rest
		}
	}
	if s != "" && (s[0] == '$' || s[0] == '~' && strings.IndexByte(s, '/') > 0) {
		return entry, fmt.Errorf("path %q is not expanded as a shell does: write it from / or ~/", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			return entry, fmt.Errorf("path %q has a part \"..\": write it without", s)
		}
		if _, err := path.Match(part, ""); err != nil {
			return entry, fmt.Errorf("reading %q: %w", s, err)
		}
		entry.parts = append(entry.parts, strings.ToLower(part))
	}
	if len(entry.parts) == 0 {
		return entry, fmt.Errorf("path %q covers everything: name a file or directory", s)
	}
	return entry, nil
}

// A Buffer is memory that is used again.
type Buffer struct{ parts, clean, folded, home []string }

// Clear forgets the paths.
func (b *Buffer) Clear() {
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

// Detect returns what a path, or a URI with the scheme file, is.
func (p *Place) Detect(s string, b *Buffer) (found detector.Set) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0
	}
	if len(s) > maxPath {
		return detector.PathUnresolved
	}
	if rest, ok := CutFile(s); ok {
		for range 2 { // a server may decode what another part has decoded
			if file := fileURI(rest); file != "" {
				found |= p.Detect(file, b)
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
		found = detector.PathBlocked
		s = strings.ReplaceAll(s, "\x00", "")
		if s == "" {
			return found
		}
	}
	found |= p.compare(s, b)
	if rest, ok := cutHome(s); ok && p.Home != nil {
		found |= p.compare("~"+strings.ReplaceAll(rest, `\`, "/"), b) // not every server expands it
	}
	if strings.IndexByte(s, '\\') >= 0 {
		found |= p.compare(strings.ReplaceAll(s, `\`, "/"), b) &^ detector.PathUnresolved
	}
	return found
}

// compare judges a path as a text, and on disk where that is possible.
func (p *Place) compare(s string, b *Buffer) (found detector.Set) {
	b.parts = components(b.parts[:0], s)
	parts := b.parts
	for _, part := range parts {
		if isVariable(part) {
			found |= detector.PathUnresolved
		}
	}
	absolute := s[0] == '/'
	base := p.Cwd
	switch {
	case absolute:
		base = []string{}
	case parts[0] == "~":
		base, parts = p.Home, parts[1:]
		if base == nil {
			found |= detector.PathUnresolved
		}
	case parts[0][0] == '~':
		found |= detector.PathUnresolved
		base, parts = nil, parts[1:]
	case base == nil:
		found |= detector.PathUnresolved
	}
	clean, ups, popped := join(append(b.clean[:0], base...), parts)
	b.clean = clean
	if ups > 0 || popped && absolute {
		found |= detector.PathTraversal
	}
	found |= p.lexical(clean, base != nil || ups >= rootUps, b)
	if found&detector.PathBlocked == 0 && base != nil && p.Readlink != nil && !isHarmlessDevice(clean) {
		if real, ok := p.real(base, parts); !ok {
			found |= detector.PathUnresolved
		} else {
			found |= p.lexical(real, true, b)
		}
	}
	return found
}

// cutHome cuts a variable for the home directory off a path.
func cutHome(s string) (rest string, ok bool) {
	if s[0] != '$' && s[0] != '%' {
		return s, false
	}
	end := strings.IndexAny(s, `/\`)
	if end < 0 {
		end = len(s)
	}
	switch strings.ToUpper(s[:end]) {
	case "$HOME", "${HOME}", "%USERPROFILE%", "%HOME%", "$ENV:USERPROFILE", "$ENV:HOME":
		return s[end:], true
	}
	return s, false
}

// real resolves a path on disk, as the kernel does: component by component, each
// link where it stands. What does not exist stays as it is.
func (p *Place) real(base, parts []string) (clean []string, ok bool) {
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
		target, link := p.Readlink("/" + strings.Join(clean, "/"))
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
func (p *Place) lexical(parts []string, absolute bool, b *Buffer) (found detector.Set) {
	b.folded = folded(b.folded[:0], parts)
	parts = b.folded
	if absolute {
		parts = system(parts)
		found |= blocked(parts)
		for _, own := range p.Own {
			if hasPrefix(parts, own) {
				found |= detector.PathSensitive
			}
		}
	}
	if len(parts) > 0 && found == 0 && (sensitiveAnywhere(parts) || absolute && sensitiveSystem(parts)) {
		found |= detector.PathSensitive
	}
	for _, s := range p.Sensitive {
		switch {
		case s.home && p.Home != nil && absolute:
			b.home = folded(b.home[:0], p.Home)
			if h := b.home; hasPrefix(parts, h) && matchPrefix(parts[len(h):], s.parts) {
				found |= detector.PathSensitive
			}
		case s.absolute && absolute:
			if matchPrefix(parts, s.parts) {
				found |= detector.PathSensitive
			}
		case !s.absolute:
			for i := range parts {
				if matchPrefix(parts[i:], s.parts) {
					found |= detector.PathSensitive
					break
				}
			}
		}
	}
	if found&detector.PathBlocked != 0 {
		found &^= detector.PathSensitive
	}
	return found
}
