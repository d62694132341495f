package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/code"
	"auditproxy/mcpproxy/risk/command/own"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// filter judges programs that read files and print something made of them.
func (s rules) filter(name string, args []shell.Field, in shell.Stream) shell.Stream {
	if !s.Spend(40 + 8*len(args)) {
		return shell.Anything
	}
	pattern := shell.OneOf(name, "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "tr")
	short, long := "", ""
	switch name {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack":
		short, long = "efmABCdDgtTEj", "regexp file max-count after-context before-context context include exclude exclude-dir glob type color colour"
	case "sed", "gsed":
		short, long = "efl", "expression file line-length"
	case "awk", "gawk", "mawk", "nawk":
		short, long = "Ffveio", "field-separator file assign source include"
	case "head", "tail":
		short, long = "nc", "lines bytes pid"
	case "cut":
		short, long = "bcdf", "bytes characters delimiter fields output-delimiter"
	case "sort":
		short, long = "koStT", "key output buffer-size field-separator temporary-directory compress-program"
	case "base64":
		short, long = "wibo", "wrap input output"
	case "bat", "batcat":
		short, long = "lHr", "language highlight-line line-range style theme"
	case "openssl":
		short = ""
	}
	p := shell.ParseFlags(args, short, long)
	if p.Help {
		return shell.Anything
	}
	files := p.Args
	script := ""
	if pattern && !p.Has("e", "f", "regexp", "file", "expression", "source") && len(files) > 0 {
		script, files = files[0].Code(), files[1:]
	} else if e, ok := p.Value("e", "expression", "source"); ok && pattern {
		script = e.Code()
	}
	out := in
	var secret detector.Set // and what else is known of where the output comes from
	if in.Kind == shell.File {
		secret = shell.Local
	}
	unread := name == "jq" && p.Has("n", "null-input")
	for i, a := range files {
		if place.IsCredential(a.Text) || a.From&detector.CredentialRead != 0 {
			secret |= detector.CredentialRead
			s.Add(detector.CredentialRead)
		}
		if shell.OneOf(name, "tr", "jq", "yq") && name == "tr" {
			break
		}
		if a.Text == "-" {
			continue
		}
		st := s.Open(a)
		if st.Kind == shell.File && !unread {
			secret |= shell.Local
		}
		if i == 0 {
			out = st
		} else {
			out = out.FollowedBy(st)
		}
	}
	out.From |= secret
	switch name {
	case "cat", "bat", "batcat":
		if len(files) == 0 {
			return in
		}
		return out
	case "sed", "gsed":
		s.sedScript(script, &p)
	case "awk", "gawk", "mawk", "nawk":
		code.Judge(s.Shell, "awk", script)
	case "sort":
		if o, ok := p.Value("o", "output"); ok {
			s.WriteTo(o)
		}
		if cmd, ok := p.Value("compress-program"); ok {
			s.MaybeRun(cmd.Text)
		}
	case "less", "more":
		for _, a := range args {
			if text, ok := strings.CutPrefix(a.Text, "+!"); ok {
				s.Run(text, shell.Stream{})
			}
		}
	case "openssl":
		if len(args) > 0 && shell.OneOf(args[0].Text, "s_client") && in.Kind > shell.Empty {
			s.Add(detector.Exfiltration)
		}
	case "gpg", "gpg2":
		if p.Has("export-secret-keys", "export-secret-subkeys") {
			for _, n := range p.Names {
				if strings.HasPrefix(n, "export-secret") {
					s.Add(detector.CredentialRead)
				}
			}
		}
		for _, n := range p.Names {
			if strings.HasPrefix(n, "delete-") {
				s.Add(detector.ForcedDelete)
			}
		}
	}
	if out.Kind == shell.Empty {
		return out
	}
	if name == "head" || name == "tail" {
		for _, o := range p.Values {
			if o.Value.Text == "0" {
				return shell.Stream{Kind: shell.Empty}
			}
		}
	}
	out.From &^= shell.Generated
	from := out.From
	if pattern && own.Named(script) {
		from |= detector.AuditTampering // its processes, of a list of them
	}
	switch name {
	case "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "sort", "uniq", "nl":
		if out.Kind == shell.Text && strings.Count(out.Text, "\n") <= 1 && !pattern && name != "nl" {
			return out
		}
	case "base64", "base32", "basenc":
		if p.Has("d", "D", "decode", "di") {
			from |= detector.DecodedExec
		} else if from&shell.Local != 0 {
			from |= shell.Encoded
		}
	case "xxd":
		if p.Has("r", "revert") {
			from |= detector.DecodedExec
		} else if from&shell.Local != 0 {
			from |= shell.Encoded
		}
	default:
		from |= detector.DecodedExec
	}
	return shell.Stream{Kind: shell.Unknown, From: from}
}

// sedScript judges the commands of sed that run or empty something.
func (s rules) sedScript(script string, p *shell.Flags) {
	if !s.Spend(4 * len(script)) {
		return
	}
	inPlace := p.Has("i", "in-place")
	if inPlace {
		for _, a := range p.Args {
			s.WriteTo(a)
		}
		if shell.OneOf(strings.TrimSpace(script), "d", "s/.*//", "s/.*//g", "1,$d", "1,$ d", "/.*/d", "/^/d", "/$/d") {
			s.Add(detector.EmptyFile)
		}
	}
	// The e command runs a line; the e flag runs the result of a substitution.
	for part := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		part = strings.TrimLeft(strings.TrimSpace(part), "0123456789,$!~+ {")
		if len(part) > 1 && part[0] == 'e' && (part[1] == ' ' || part[1] == '\t') {
			s.Run(part[2:], shell.Stream{})
		}
		if len(part) > 3 && part[0] == 's' {
			// A delimiter with a backslash belongs to the text: NUL takes its place.
			mark := part[1:2]
			pieces := strings.Split(strings.ReplaceAll(part[2:], `\`+mark, "\x00"), mark)
			if len(pieces) == 3 && strings.Contains(pieces[2], "e") && strings.Trim(pieces[2], "egipmIM0123456789 }") == "" {
				s.Run(strings.ReplaceAll(pieces[1], "\x00", mark), shell.Stream{})
				s.Add(detector.Opaque)
			}
		}
	}
}
