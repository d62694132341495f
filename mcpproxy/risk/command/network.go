package command

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// transfers applies the rules about networks.
func (s rules) transfers(name string, args []shell.Field, in shell.Stream) bool {
	switch name {
	case "curl":
		s.curl(args, in)
	case "wget", "wget2", "aria2c", "axel", "lwp-request", "lynx", "w3m", "http", "https", "xh", "httpie", "fetch", "iwr", "irm", "Invoke-WebRequest", "Invoke-RestMethod":
		s.wget(name, args, in)
	case "nc", "ncat", "netcat", "socat", "telnet", "nc.traditional", "nc.openbsd":
		p := shell.ParseFlags(args, "wpsiXxqgGIoPTV", "wait source-port source")
		if name == "socat" {
			from, to := false, false
			for _, a := range args {
				upper := strings.ToUpper(a.Text)
				if strings.HasPrefix(upper, "FILE:") || strings.HasPrefix(upper, "OPEN:") || strings.HasPrefix(upper, "GOPEN:") {
					from = true
				}
				to = to || strings.HasPrefix(upper, "TCP") || strings.HasPrefix(upper, "UDP") || strings.HasPrefix(upper, "OPENSSL")
				if _, cmd, ok := strings.Cut(a.Text, ":"); ok && (strings.HasPrefix(upper, "EXEC:") || strings.HasPrefix(upper, "SYSTEM:")) {
					s.Add(detector.Exfiltration)
					cmd, _, _ = strings.Cut(cmd, ",")
					s.Run(cmd, shell.Stream{})
				}
			}
			if from && to {
				s.Add(detector.Exfiltration)
			}
		}
		literal := in.Kind == shell.Text && in.From&detector.CredentialRead == 0 // the text itself says what is sent
		if in.Kind != shell.None && in.Kind != shell.Empty && !literal && !p.Has("z") || name != "socat" && p.Has("e", "c", "exec", "sh-exec") {
			s.Add(detector.Exfiltration)
		}
	case "ztcp":
		if p := shell.ParseFlags(args, "d", ""); !p.Help && len(p.Args) > 1 && !p.Has("c", "L") {
			s.Add(detector.Exfiltration)
		}
	case "socket":
		for _, a := range args {
			if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' && strings.Contains(a.Text, "p") {
				s.Add(detector.Exfiltration) // gives a program to the other side
			}
		}
	case "sftp", "ftp", "tftp", "lftp", "smbclient", "ncftpput":
		for i, a := range args {
			if i > 0 && shell.OneOf(args[i-1].Text, "-e", "-c") {
				s.ftp(a.Code())
			}
		}
		if in.Kind == shell.Text {
			s.ftp(in.Text)
		}
		for _, a := range args {
			if place.IsCredential(a.Text) {
				s.Add(detector.Exfiltration)
			}
			if strings.Contains(a.Text, "put ") || shell.OneOf(a.Text, "put", "mput") {
				s.Add(detector.Exfiltration)
			}
		}
		if in.Kind == shell.Text && strings.Contains(in.Text, "put ") {
			s.Add(detector.Exfiltration)
		}
	case "dig", "nslookup", "host", "drill", "ping":
		for _, a := range args {
			if a.From&shell.Encoded != 0 || a.From&shell.Local != 0 && a.Text != shell.Hole && !strings.HasPrefix(a.Text, "@") {
				s.Add(detector.Exfiltration) // in the labels of a name
			}
		}
	case "ssh-copy-id":
		s.Add(detector.Persistence)
	case "security":
		if p := shell.ParseFlags(args, "", ""); shell.OneOf(p.Arg(0), "dump-keychain", "export", "find-generic-password", "find-internet-password") &&
			(p.Has("w", "g", "d") || p.Arg(0) == "export") {
			s.Add(detector.CredentialRead)
		} else if strings.HasPrefix(p.Arg(0), "delete-") {
			s.Add(detector.ForcedDelete)
		}
	case "secret-tool", "gopass", "pass", "bw":
		if p := shell.ParseFlags(args, "", ""); shell.OneOf(p.Arg(0), "lookup", "show", "get", "-c", "read") {
			s.Add(detector.CredentialRead)
		} else if shell.OneOf(p.Arg(0), "rm", "clear", "delete") {
			s.Add(detector.ForcedDelete)
		}
	case "vim.tiny", "view", "base16", "cmp", "diff", "wc", "file", "stat", "source-highlight", "look", "split", "csplit", "shuf", "zless", "most", "pg", "bzless", "ditto", "mail", "mailx", "mutt", "sendmail":
		if shell.OneOf(name, "mail", "mailx", "mutt", "sendmail") {
			s.sends(args)
			s.mail(args, in)
		}
		for _, a := range args {
			if (place.IsCredential(a.Text) || name == "ditto" && place.IsCredentialDir(a.Text)) && !shell.OneOf(name, "stat", "file", "wc") {
				s.Add(detector.CredentialRead)
			}
		}
	default:
		return false
	}
	return true
}

// mail judges what a message has of files: its text and its attachments.
func (s rules) mail(args []shell.Field, in shell.Stream) {
	if in.Kind == shell.File || in.Kind == shell.Unknown && in.From&shell.Local != 0 {
		s.Add(detector.Exfiltration)
	}
	p := shell.ParseFlags(args, "saAcbFrie", "attach")
	for _, o := range p.Values {
		if shell.OneOf(o.Name, "a", "A", "attach") && !strings.Contains(o.Value.Text, ": ") { // a header
			s.Add(detector.Exfiltration)
		}
	}
}

// ftp judges the commands that a client of a file server gets.
func (s rules) ftp(text string) {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		line = strings.TrimSpace(line)
		if cmd, ok := strings.CutPrefix(line, "!"); ok {
			s.Run(cmd, shell.Stream{})
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToLower(verb) {
		case "rm", "dele", "rmd", "-dele", "-rmd", "delete", "mdelete", "mrm", "glob", "rmdir", "del", "deltree":
			if verb != "glob" || strings.HasPrefix(strings.TrimSpace(rest), "rm") {
				s.Add(detector.ForcedDelete)
			}
		case "mirror":
			if strings.Contains(rest, "-delete") || strings.Contains(rest, "--Remove-source") {
				s.Add(detector.RecursiveDelete)
			}
			for option := range strings.FieldsSeq(rest) {
				if option == "--reverse" || len(option) > 1 && option[0] == '-' && option[1] != '-' && strings.Contains(option, "R") {
					s.Add(detector.Exfiltration)
				}
			}
		}
	}
}

// sends judges the operands of a program that sends files to another host.
func (s rules) sends(args []shell.Field) {
	for i, a := range args {
		if place.IsCredential(a.Text) || place.IsCredentialDir(a.Text) || i+1 < len(args) && place.HasCredentials(a.Text) {
			s.Add(detector.CredentialRead | detector.Exfiltration)
		}
	}
}

// sendsLocal judges what a client of HTTP sends of a file or the environment: in
// an address, a body, or a header.
func (s rules) sendsLocal(name string, args []shell.Field) {
	for i, a := range args {
		if a.From&shell.Local == 0 {
			continue
		}
		at := strings.IndexByte(a.Text, '?')
		hole := strings.LastIndex(a.Text, shell.Hole)
		option, value, ok := strings.Cut(a.Text, "=")
		switch {
		case strings.HasPrefix(a.Text, "--") && ok:
		case len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-':
			option, value = a.Text[:2], a.Text[2:]
		case i > 0:
			option, value = args[i-1].Text, a.Text
		default:
			option, value = "", a.Text
		}
		switch {
		case at >= 0 && at < hole && (strings.Contains(a.Text[:at], "://") || strings.Contains(a.Text[:at], ".")),
			isBody(option),
			len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] == 'd',
			leaks(name, option, value, a.From&shell.Encoded != 0):
			s.Add(detector.Exfiltration)
		}
	}
}

// leaks reports whether content in a header or an address gives it away. A header
// is usually a token that the server knows, and a path the version of something:
// these are not encoded first, and are part of a value.
func leaks(program, option, value string, encoded bool) bool {
	switch option {
	case "-H", "--header":
		name, _, _ := strings.Cut(strings.ToLower(value), ":")
		for _, w := range [...]string{"auth", "token", "key", "secret", "csrf", "sign", "hash", "digest", "sum", "version", "date", "length", "-id", "session"} {
			if strings.Contains(name, w) {
				return false
			}
		}
		return encoded || strings.HasPrefix(name, "x-")
	case "-A", "-U", "-e", "--user-agent", "--referer":
		return encoded || value == shell.Hole && (option != "-U" || program != "curl") // of curl, the name at a proxy
	}
	return encoded
}

// isBody reports whether the value of an option is sent as the body.
func isBody(option string) bool {
	switch strings.ToLower(option) {
	case "-d", "-f", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--form", "--form-string", "--json", "--url-query", "--post-data", "--body-data", "-body", "--raw":
		return true
	}
	return false
}

func (s rules) curl(args []shell.Field, in shell.Stream) {
	var method shell.Field
	remoteName, url := false, ""
	var outs []shell.Field
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value := "", shell.Field{}
		switch {
		case strings.HasPrefix(a.Text, "--"):
			name = a.Text[2:]
			if n, v, ok := strings.Cut(name, "="); ok {
				name, value = n, shell.Field{Text: v, Unknown: a.Unknown, From: a.From}
			} else if i+1 < len(args) && shell.Listed("quote data data-ascii data-binary data-raw data-urlencode form form-string url-query upload-file request output header user url config cookie cookie-jar user-agent referer max-time connect-timeout retry json proxy cacert cert key write-out", name) {
				i++
				value = args[i]
			}
		case len(a.Text) > 1 && a.Text[0] == '-':
			for j := 1; j < len(a.Text); j++ {
				if c := a.Text[j]; strings.IndexByte("dFToXHuAbcDeEhkKmPQrtUwxyYzC", c) >= 0 && c != 'k' {
					name, value = string(c), shell.Field{Text: a.Text[j+1:], Unknown: a.Unknown, From: a.From}
					if value.Text == "" && i+1 < len(args) {
						i++
						value = args[i]
					}
					break
				} else if c == 'O' || c == 'J' {
					remoteName = true
				}
			}
		default:
			url = a.Text
		}
		switch name {
		case "d", "data", "data-ascii", "data-binary", "data-urlencode", "json":
			if at := strings.IndexByte(value.Text, '@'); at == 0 || at > 0 && name == "data-urlencode" && !strings.Contains(value.Text[:at], "=") {
				s.Add(detector.Exfiltration)
				if place.IsCredential(value.Text[at+1:]) {
					s.Add(detector.CredentialRead)
				}
			}
			if value.From&detector.CredentialRead != 0 {
				s.Add(detector.Exfiltration)
			}
		case "url-query":
			if _, v, ok := strings.Cut(value.Text, "@"); ok && v != "" && !strings.Contains(value.Text[:len(value.Text)-len(v)], "=") {
				s.Add(detector.Exfiltration)
			}
		case "F", "form":
			if _, v, _ := strings.Cut(value.Text, "="); strings.HasPrefix(v, "@") || strings.HasPrefix(v, "<") {
				s.Add(detector.Exfiltration)
			}
		case "T", "upload-file":
			s.Add(detector.Exfiltration)
		case "H", "header":
			if file, ok := strings.CutPrefix(value.Text, "@"); ok && !strings.Contains(strings.ToLower(path.Base(file)), "header") {
				s.Add(detector.Exfiltration) // each of its lines
			}
		case "Q", "quote":
			s.ftp(value.Text)
		case "X", "request":
			method = value
		case "o", "output":
			outs = append(outs, value)
		case "remote-name", "remote-name-all", "O":
			remoteName = true
		case "url":
			url = value.Text
		case "K", "config":
			if value.Text == "-" && in.Kind == shell.Unknown {
				s.Add(detector.Opaque)
			}
		case "help", "version":
			return
		}
	}
	for _, a := range args {
		if a.From&detector.CredentialRead != 0 {
			s.Add(detector.Exfiltration)
		}
	}
	if strings.EqualFold(method.Text, "DELETE") {
		s.Add(detector.Teardown)
	}
	if remoteName {
		outs = append(outs, shell.Field{Text: urlName(url)})
	}
	for _, o := range outs {
		s.download(o)
	}
}

// urlName returns the file name that a download of the URL gets.
func urlName(url string) string {
	url, _, _ = strings.Cut(url, "?")
	url, _, _ = strings.Cut(url, "#")
	return path.Base(url)
}

func (s rules) download(f shell.Field) {
	if f.Text == "" || f.Text == "-" {
		return
	}
	s.Write(f, shell.Stream{Kind: shell.Unknown, From: detector.RemoteExec}, true)
}

func (s rules) wget(name string, args []shell.Field, in shell.Stream) {
	p := shell.ParseFlags(args, "OoPUteiaTQwlADRXBx", "output-document output-file directory-prefix user-agent tries timeout header post-data post-file body-data body-file method user password input-file load-cookies dir out")
	if file, ok := p.Value("post-file", "body-file"); ok && file.Text != "" {
		for _, n := range p.Names {
			if len(n) > 3 && (shell.Abbreviates(n, "post-file") && n != "post-data" || shell.Abbreviates(n, "body-file")) {
				s.Add(detector.Exfiltration)
			}
		}
	}
	if m, ok := p.Value("method"); ok && strings.EqualFold(m.Text, "DELETE") || shell.OneOf(name, "http", "https", "xh", "httpie") && (p.Any("DELETE") || p.Arg(0) == "delete") {
		s.Add(detector.Teardown)
	}
	switch name {
	case "http", "https", "xh", "httpie":
		for i, a := range p.Args {
			if at := strings.IndexByte(a.Text, '@'); at >= 0 && i > 0 && !strings.ContainsAny(strings.TrimRight(a.Text[:at], ":="), ":=/ ") {
				s.Add(detector.Exfiltration)
			}
		}
		if in.Kind == shell.File || in.Kind == shell.Unknown && in.From&shell.Local != 0 {
			s.Add(detector.Exfiltration)
		}
	case "iwr", "irm", "Invoke-WebRequest", "Invoke-RestMethod":
		for _, a := range args {
			if strings.EqualFold(a.Text, "-infile") {
				s.Add(detector.Exfiltration)
			}
		}
	}
	if out, ok := p.Value("O", "output-document", "o", "out"); ok {
		s.download(out)
		return
	}
	dir, _ := p.Value("P", "directory-prefix", "d", "dir")
	for _, a := range p.Args {
		if strings.Contains(a.Text, "/") {
			s.download(shell.Field{Text: path.Join(dir.Text, urlName(a.Text))})
		}
	}
}

// sshOption judges an option of ssh that is a command.
func (s rules) sshOption(value string) {
	name, cmd, _ := strings.Cut(value, "=")
	if shell.OneOf(strings.ToLower(name), "proxycommand", "localcommand", "knownhostscommand", "remotecommand") {
		s.Run(cmd, shell.Stream{})
	}
}
