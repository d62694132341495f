package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/login"
	"auditproxy/redact/prose"
)

// url reads the authority (RFC 3986, 3.2) of the URL whose "://" is at i, and
// notes where its password is.
func (s *Scanner) url(i int) lex.Span {
	t := s.text
	from := i + len("://")
	if c := formats.Webhook(t, from, maxPair); c.To > 0 {
		return c
	}
	to := from
	for to < len(t) && t[to] != '/' && t[to] != '?' && t[to] != '#' && !lex.IsURLEnd(t[to]) {
		to += max(1, lex.MarkLen(t[to:]))
	}
	scheme := t[max(0, i-len("rtmps")):i]
	if bytes.Contains(scheme, []byte("rtmp")) { // of a stream: its key
		path := to
		for to < len(t) && !lex.IsURLEnd(t[to]) {
			to++
		}
		key := path + 1 + bytes.LastIndexByte(t[path:to], '/')
		if key > path+1 && lex.MarkLen(t[key:]) == 0 {
			return lex.Span{From: key, To: to}
		}
		to = path
	}
	userinfo := bytes.LastIndexByte(t[from:to], '@')
	if userinfo < 0 && (bytes.HasSuffix(scheme, []byte("vmess")) || string(scheme[max(0, len(scheme)-3):]) == "ssr") &&
		lex.MarkLen(t[from:]) == 0 { // all of it is encoded
		for to < len(t) && !lex.IsURLEnd(t[to]) {
			to++
		}
		return lex.Span{From: from, To: to}
	}
	colon := bytes.IndexByte(t[from:to], ':')
	if userinfo < 0 && (colon < 0 || !lex.IsPort(t[from+colon+1:to])) {
		// A password or a token with a "/" in it that should have been escaped.
		if at := s.at.Next(s.text, to, func(c byte) bool { return c == '@' }); at < s.end.Next(s.text, to, lex.IsURLEnd) &&
			(colon >= 0 || at-from <= maxPair && prose.IsKey(t[from:at])) {
			userinfo = at - from
		}
	} else if userinfo >= 0 && colon > userinfo && to < len(t) && (t[to] == '#' || t[to] == '?') && !lex.IsPort(t[from+colon+1:to]) {
		// The same behind a user with an "@": https://ann@example.com:SE#CRET@host.
		end := min(s.end.Next(s.text, to, lex.IsURLEnd), to+maxPair)
		if at := bytes.LastIndexByte(t[to:end], '@'); at >= 0 {
			userinfo = to + at - from
		}
	}
	if userinfo < 0 && to < len(t) && t[to] == '/' {
		if v := login.Link(t, to+1); v.From < v.To {
			return v
		}
	}
	switch {
	case userinfo < 0, (colon < 0 || colon > userinfo) &&
		(login.HasUsers(t[:i]) || !bytes.Contains(scheme, []byte("http")) && about.IsHumped(t[from:from+userinfo])):
		return lex.Span{} // a user of SSH is no token, nor is the word before spark://Driver@host
	case colon < 0 || colon > userinfo:
		s.password = lex.Span{From: from, To: from + userinfo}
	case colon+1 == userinfo || string(t[from+colon+1:from+userinfo]) == "x-oauth-basic": // a token in the user's place
		s.password = lex.Span{From: from, To: from + colon}
	default:
		s.password = lex.Span{From: from + colon + 1, To: from + userinfo}
	}
	return lex.Span{}
}
