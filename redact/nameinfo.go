package redact

// A nameInfo is the cached classification of a member's name.
type nameInfo struct {
	class class
	role  role
	plain bool // it is unchanged in a summary
}

// Bounds of the name cache, which exists because names repeat. A client cannot
// exceed them.
const (
	maxInfos    = 256
	maxInfoName = 64 // bytes
)

func (p *pass) nameInfo(name []byte) nameInfo {
	if info, ok := p.infos[string(name)]; ok {
		return info
	}
	info := nameInfo{class: p.r.names.class(&p.folded, name), role: roleOf(name)}
	if len(p.infos) < maxInfos && len(name) <= maxInfoName {
		info.plain = isPlain(name) && len(p.scan.credentials(name)) == 0
		p.infos[string(name)] = info
	}
	return info
}

// isPlain reports whether b needs no escape in JSON.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
