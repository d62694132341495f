package redact

import "bytes"

// isValueTag reports whether t starts with the name of an XML element that holds
// a value.
func isValueTag(t []byte) bool {
	n := 0
	for n < len(t) && n < 16 && classes[t[n]]&isAlnum != 0 {
		n++
	}
	return n < len(t) && t[n] == '>' && roleOf(t[:n]) == valueRole
}

// tagged finds the content of an XML element of a sensitive name, or with an
// attribute that names a secret, whose start tag ends at i.
func (s *scanner) tagged(i int) span {
	t := s.text
	first := i
	for first > s.from && classes[t[first-1]]&isName != 0 {
		first--
	}
	last := i
	if i > s.from && classes[t[i-1]]&isQuote != 0 { // a tag with attributes
		for first = i; first > s.from && i-first < maxPair && t[first-1] != '<' && t[first-1] != '>'; {
			first--
		}
		for last = first; last < i && (classes[t[last]]&isName != 0 || t[last] == ':'); {
			last++
		}
	} else if first > s.from && t[first-1] == ':' { // a name space
		for first > s.from && (classes[t[first-1]]&isName != 0 || t[first-1] == ':') {
			first--
		}
	}
	if at := bytes.LastIndexByte(t[first:last], ':'); at >= 0 && first > s.from && t[first-1] == '<' {
		first += at + 1
	}
	isTag := first > s.from && (t[first-1] == '<' || t[first-1] == ':') && first < last
	if !isTag && i >= s.pair {
		return span{}
	}
	from := i + 1
	for from < len(t) && t[from] <= ' ' {
		from++
	}
	const data = "<![CDATA["
	if bytes.HasPrefix(t[from:], []byte(data)) {
		from += len(data)
	}
	to := from
	for to < len(t) && t[to] != '<' && (t[to] != ']' || !bytes.HasPrefix(t[to:], []byte("]]>"))) && t[to] != '[' && t[to] != '>' {
		to++
	}
	if to+1 < len(t) && t[to] == '<' && t[to+1] != '/' && t[to+1] != '!' && bytes.IndexByte(t[from:to], ' ') >= 0 {
		return span{} // a type parameter: List<Token> tokens = new ArrayList<>()
	}
	closing := bytes.HasPrefix(t[to:], []byte("</"))
	for to > from && t[to-1] <= ' ' {
		to--
	}
	if from == to || first > s.from && first < i && t[first-1] == '/' {
		return span{}
	}
	if markLen(t[from:]) > 0 {
		s.pair = 0
		return span{}
	}
	switch {
	case isTag && s.sensitiveName(t[first:last], noWhole):
	case isTag && roleOf(t[first:last]) == nameRole:
		if s.named(span{from, to}) {
			s.pair = min(len(t), to+maxPair)
		}
		return span{}
	case i < s.pair && t[i-1] != '/' && (!isTag || last < i && closing || roleOf(t[first:last]) == valueRole):
		s.pair = 0
	default:
		return span{}
	}
	return span{from, to}
}

// manifests adds the values of a Kubernetes Secret under any names.
func (s *scanner) manifests() {
	t := s.text
	if !isManifest(t) {
		return
	}
	for _, name := range []string{"data", "stringData"} {
		for at := 0; ; {
			n := bytes.Index(t[at:], []byte(name))
			if n < 0 {
				break
			}
			at += n + len(name)
			i := at
			for i < len(t) && (classes[t[i]]&isQuote != 0 || t[i] == '\\' || t[i] == ' ') {
				i++
			}
			if i == len(t) || t[i] != ':' || at > len(name) && classes[t[at-len(name)-1]]&isName != 0 {
				continue
			}
			for i++; i < len(t) && t[i] == ' '; i++ {
			}
			if i < len(t) && t[i] == '{' {
				to := s.closed(i)
				s.found = append(s.found, span{i, to})
				at = to
				continue
			}
			if i < len(t) && (t[i] == '\n' || t[i] == '\r') {
				at = s.block(i, indentAt(t, at-len(name)))
			}
		}
	}
	s.merge()
}

// isManifest reports whether t has "kind: Secret", as YAML or as JSON.
func isManifest(t []byte) bool {
	for {
		at := bytes.Index(t, []byte("kind"))
		if at < 0 {
			return false
		}
		t = t[at+len("kind"):]
		kind := bytes.TrimLeft(t[:min(len(t), 32)], "\\\"' :\t")
		if len(kind) >= 6 && hasFoldSuffix(kind[:6], "secret") && (len(kind) == 6 || classes[kind[6]]&isName == 0) {
			return true
		}
	}
}

// indentAt returns how many bytes of white space the line of t[i] starts with, 0
// if t[i] is not the first thing behind it.
func indentAt(t []byte, i int) int {
	from := i
	for from > 0 && (t[from-1] == ' ' || t[from-1] == '\t') {
		from--
	}
	if from > 0 && t[from-1] != '\n' {
		return 0
	}
	return i - from
}

// block adds the values in the lines behind i that are indented by more than
// outer bytes, and returns where they end.
func (s *scanner) block(i, outer int) int {
	t := s.text
	for i < len(t) {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			return len(t)
		}
		i += end + 1
		stop := bytes.IndexByte(t[i:], '\n')
		if stop < 0 {
			stop = len(t) - i
		}
		line := t[i : i+stop]
		if indent := len(line) - len(bytes.TrimLeft(line, " \t")); indent <= outer && indent < len(bytes.TrimRight(line, "\r")) {
			return i
		}
		colon := bytes.IndexByte(line, ':')
		from := i + colon + 1
		for from < i+stop && (t[from] <= ' ' || classes[t[from]]&isQuote != 0) {
			from++
		}
		to := i + stop
		for to > from && (t[to-1] <= ' ' || classes[t[to-1]]&isQuote != 0) {
			to--
		}
		if from < to && markLen(t[from:]) == 0 && !isPlaceholder(t[from:to]) {
			s.found = append(s.found, span{from, to})
		}
	}
	return i
}
