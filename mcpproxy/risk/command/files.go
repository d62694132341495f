package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/code"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// deletes applies the rules about files.
func (s rules) deletes(name string, args []shell.Field, in shell.Stream) bool {
	switch name {
	case "rm", "grm", "srm", "safe-rm", "rmtrash", "trash", "trash-put", "trash-cli", "rimraf", "del-cli", "shred", "gshred", "wipe", "scrub", "unlink", "gunlink", "rmdir", "grmdir", "rip":
		p := shell.ParseFlags(args, "", "interactive iterations size random-source")
		if p.Help || name == "rm" && p.Has("help") && len(p.Args) == 0 {
			return true
		}
		if name == "rmdir" && len(args) > 0 && (strings.EqualFold(args[0].Text, "/s") || strings.EqualFold(args[0].Text, "/q")) {
			s.Add(detector.RecursiveDelete)
		}
		if len(p.Args) > 0 {
			if name != "unlink" && name != "shred" && p.Has("r", "R", "recursive") || name == "rimraf" {
				s.Add(detector.RecursiveDelete)
			}
			if p.Has("f", "force") || !p.Has("r", "R", "recursive") {
				s.Add(detector.ForcedDelete)
			}
			for _, a := range p.Args {
				if place.IsDevice(a.Text) {
					s.Add(detector.DeviceWrite)
				}
			}
		}
	case "trash-empty", "trash-rm", "gio", "gvfs-trash", "kioclient":
		if name != "gio" && name != "kioclient" || len(args) > 1 && shell.OneOf(args[0].Text, "trash", "remove", "move") {
			s.Add(detector.ForcedDelete)
		}
	case "truncate", "gtruncate":
		p := shell.ParseFlags(args, "srI", "size reference")
		if size, ok := p.Value("s", "size"); ok && !p.Help && len(p.Args) > 0 {
			n := strings.TrimLeft(size.Text, " ")
			if n == "" || strings.ContainsAny(n[:1], "-<") || strings.Trim(n, "0KMGTPEZYBkib") == "" || n == "%0" {
				s.Add(detector.EmptyFile)
			}
		} else if len(p.Args) > 0 && strings.EqualFold(p.Args[0].Text, "table") {
			code.SQL(s.Shell, "truncate "+shell.Join(args))
		}
	case "fallocate":
		if p := shell.ParseFlags(args, "lo", "length offset"); p.Has("p", "punch-hole", "c", "collapse-range", "z", "zero-range") {
			s.Add(detector.EmptyFile)
		}
	case "dd", "gdd", "dcfldd", "dc3dd":
		s.dd(args)
	case "cp", "gcp", "install", "mv", "gmv", "ln", "rsync", "scp":
		s.copies(name, args)
	case "tar", "gtar", "bsdtar", "unzip", "zip", "7z", "7za", "rclone", "unison", "mc", "gsutil", "s3cmd", "s5cmd", "b2":
		s.archives(name, args, in)
	case "hdfs", "hadoop":
		for _, a := range args {
			switch a.Text {
			case "-rm", "-rmr", "-rmdir", "-expunge", "-truncate":
				s.Add(detector.RecursiveDelete)
			case "-format":
				s.Add(detector.Teardown)
			}
		}
	case "atrm":
		if len(args) > 0 && args[0].Text != "-V" {
			s.Add(detector.ForcedDelete)
		}
	case "tmutil", "timeshift", "duplicity":
		for _, a := range args {
			if verb := strings.TrimLeft(a.Text, "-"); strings.HasPrefix(verb, "delete") || strings.HasPrefix(verb, "remove-") {
				s.Add(detector.ForcedDelete)
			}
		}
	case "dmesg":
		if p := shell.ParseFlags(args, "lfns", "level facility console-level since until"); p.Has("C", "clear", "c", "read-clear") && !p.Help {
			s.Add(detector.EmptyFile)
		}
	case "wevtutil", "WEVTUTIL":
		if len(args) > 0 && shell.OneOf(strings.ToLower(args[0].Text), "cl", "clear-log") {
			s.Add(detector.EmptyFile)
		}
	case "fsutil":
		for _, a := range args {
			switch strings.ToLower(a.Text) {
			case "deletejournal", "delete", "setzerodata", "seteof", "dismount":
				s.Add(detector.ForcedDelete)
			}
		}
	case "sdelete", "sdelete64":
		s.Add(detector.ForcedDelete)
	case "logrotate":
		if p := shell.ParseFlags(args, "s", "state"); p.Has("f", "force") && !p.Has("d", "debug") {
			s.Add(detector.EmptyFile)
		}
	case "journalctl":
		if p := shell.ParseFlags(args, "unptS", ""); p.Has("vacuum-time", "vacuum-size", "vacuum-files") && !p.Help {
			for _, n := range p.Names {
				if strings.HasPrefix(n, "vacuum") {
					s.Add(detector.EmptyFile)
				}
			}
		}
	case "history", "fc":
		if name == "fc" && len(args) > 0 && shell.OneOf(args[0].Text, "-s", "-e") {
			s.Add(detector.Opaque) // a command of the history
		}
		if p := shell.ParseFlags(args, "", ""); p.Has("c", "d") {
			s.Add(detector.EmptyFile)
		}
	default:
		if lower := strings.ToLower(name); isWindows(lower) && (!isProse(name) || len(args) > 0 && strings.HasPrefix(args[0].Text, "/")) {
			code.PowerShell(s.Shell, lower, args, in)
			return true
		}
		return false
	}
	return true
}

// isWindows reports whether package code knows a program of Windows, whose names
// ignore case.
func isWindows(lower string) bool {
	return shell.In(lower, "remove-item remove-itemproperty ri del erase rd rmdir clear-content deltree clear-recyclebin format-volume clear-disk remove-partition initialize-disk stop-computer "+
		"restart-computer stop-process spps taskkill iex invoke-expression stop-service vssadmin wbadmin bcdedit diskpart cipher icacls reg schtasks format")
}

// find judges find and fd. It returns CredentialRead if what they find are files with
// credentials.
func (s rules) find(args []shell.Field) (of detector.Set) {
	for i := 0; i < len(args); i++ {
		switch a := args[i].Text; a {
		case "-delete":
			s.Add(detector.RecursiveDelete)
		case "--help", "-help", "--version":
			return of
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			end := i + 1
			for end < len(args) && args[end].Text != ";" && (args[end].Text != "+" || args[end-1].Text != "{}") {
				end++
			}
			cmd := append([]shell.Field(nil), args[i+1:end]...)
			for j := range cmd {
				if cmd[j].Text == "{}" {
					cmd[j].Text, cmd[j].Unknown, cmd[j].From = shell.Hole, true, of
				}
			}
			if strings.HasPrefix(a, "-x") || strings.HasPrefix(a, "-X") || strings.HasPrefix(a, "--") {
				cmd = append(cmd, shell.Field{Text: shell.Hole, Unknown: true})
			}
			s.Command(cmd, shell.Stream{})
			i = end
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-type", "-user", "-group", "-perm", "-size", "-mtime", "-printf", "-fprint", "-fprintf", "-lname":
			if i++; i == len(args) {
				break
			}
			switch a {
			case "-fprint", "-fprintf":
				s.WriteTo(args[i])
			case "-name", "-iname", "-path", "-ipath", "-wholename":
				if place.IsCredential(args[i].Text) || place.IsCredentialDir(args[i].Text) {
					of |= detector.CredentialRead
				}
			}
		}
	}
	return of
}

func (s rules) dd(args []shell.Field) {
	var from, to shell.Field
	count, help := "", false
	for i, a := range args {
		key, value, _ := strings.Cut(a.Text, "=")
		switch key {
		case "if":
			from = shell.Field{Text: value, Unknown: a.Unknown, Reads: a.Reads}
		case "of":
			to = shell.Field{Text: value, Unknown: a.Unknown}
		case "count":
			count = value
		case "--help", "--version":
			help = i == 0
		}
	}
	if help || to.Text == "" {
		return
	}
	if place.IsCredential(from.Text) {
		s.Add(detector.CredentialRead)
	}
	s.WriteTo(to)
	if !strings.HasPrefix(to.Text, "/dev/") && (shell.OneOf(from.Text, "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full") || count == "0") {
		s.Add(detector.EmptyFile)
	}
}

// copies judges cp, mv, ln, install, rsync and scp.
func (s rules) copies(name string, args []shell.Field) {
	short, long := "tSgmo", "target-directory suffix mode owner group backup"
	switch name {
	case "rsync":
		short, long = "efBMT", "rsh exclude include exclude-from include-from files-from rsync-path filter bwlimit log-file temp-dir partial-dir chmod port timeout password-file backup-dir suffix compare-dest link-dest max-size min-size"
	case "scp":
		short, long = "cFiJlDoPSX", ""
	}
	p := shell.ParseFlags(args, short, long)
	if p.Help {
		return
	}
	if dir, ok := p.Value("t", "target-directory"); ok && name != "rsync" && name != "scp" {
		p.Args = append(p.Args, dir)
	}
	if len(p.Args) < 2 {
		return
	}
	from, to := p.Args[:len(p.Args)-1], p.Args[len(p.Args)-1]
	remote := false
	if name == "rsync" || name == "scp" {
		for _, key := range [...]string{"e", "rsh", "rsync-path", "S"} {
			if cmd, ok := p.Value(key); ok {
				s.MaybeRun(cmd.Text)
			}
		}
		for _, o := range p.Values {
			if o.Name == "o" {
				s.sshOption(o.Value.Text)
			}
		}
		at := strings.IndexByte(to.Text, ':')
		remote = at > 0 && !strings.Contains(to.Text[:at], "/")
	}
	if name == "rsync" {
		if p.Dry("n", "dry-run") {
			return
		}
		for _, n := range p.Names {
			if strings.HasPrefix(n, "delete") || strings.HasPrefix(n, "del") || n == "remove-source-files" || n == "remove-sent-files" {
				s.Add(detector.RecursiveDelete)
			}
		}
	}
	if name == "ln" && len(from) == 1 && from[0].Text == "/dev/null" && p.Has("f", "force") {
		s.Add(detector.EmptyFile)
	}
	copiesDirs := remote || p.Has("r", "R", "recursive", "a", "archive")
	for _, a := range from {
		if (place.IsCredential(a.Text) || copiesDirs && place.IsCredentialDir(a.Text) || remote && place.HasCredentials(a.Text) || a.From&detector.CredentialRead != 0) && name != "ln" {
			if s.Add(detector.CredentialRead); remote {
				s.Add(detector.Exfiltration)
			}
		}
	}
	if mode, ok := p.Value("m", "mode"); ok && name == "install" {
		s.chmod([]shell.Field{mode, to})
	}
	if name == "mv" && to.Text == "/dev/null" {
		s.Add(detector.ForcedDelete)
		return
	}
	if name == "ln" && len(from) > 0 && place.IsStartup(to.Text) || name != "ln" {
		s.WriteTo(to)
	}
	if place.IsStartup(to.Text) && len(from) > 0 && remote {
		s.Add(detector.Persistence)
	}
	if strings.HasPrefix(to.Text, "/dev/") || to.Text == "" {
		return
	}
	for _, a := range from {
		switch {
		case shell.OneOf(a.Text, "/dev/null", "/dev/zero"):
			s.Add(detector.EmptyFile)
		case !a.Unknown && !to.Unknown:
			s.CopyFile(a.Text, to.Text)
		}
	}
}

func (s rules) archives(name string, args []shell.Field, in shell.Stream) {
	short := "fCTIX"
	if name == "gsutil" {
		short = ""
	}
	p := shell.ParseFlags(args, short, "file directory files-from use-compress-program checkpoint-action to-command exclude")
	if (name == "rclone" || name == "gsutil") && p.Dry("n", "dry-run") || name != "tar" && p.Dry("dry-run", "dryrun") || p.Help {
		return
	}
	switch name {
	case "unzip":
		q := shell.ParseFlags(args, "dxP", "")
		dir, _ := q.Value("d")
		if len(q.Args) > 0 && !q.Has("l", "t", "v", "Z", "p", "z") {
			s.unpack(s.Open(q.Args[0]), dir.Text)
		}
	case "tar", "gtar", "bsdtar":
		s.untar(args, in)
		if p.Has("remove-files") {
			for _, n := range p.Names {
				if len(n) > 4 && shell.Abbreviates(n, "remove-files") {
					s.Add(detector.RecursiveDelete)
				}
			}
		}
		for _, o := range p.Values {
			switch {
			case shell.Abbreviates(o.Name, "checkpoint-action"):
				if text, ok := strings.CutPrefix(o.Value.Text, "exec="); ok {
					s.Run(text, shell.Stream{})
				}
			case shell.Abbreviates(o.Name, "to-command"), shell.Abbreviates(o.Name, "use-compress-program"), o.Name == "I":
				s.MaybeRun(o.Value.Text)
			}
		}
		for _, a := range p.Args {
			if place.IsCredential(a.Text) || place.IsCredentialDir(a.Text) {
				s.Add(detector.CredentialRead)
			}
		}
	case "zip":
		if p.Has("m", "move", "d", "delete") && len(p.Args) > 0 {
			s.Add(detector.ForcedDelete)
		}
		for i, a := range args {
			if shell.OneOf(a.Text, "-TT", "--unzip-command") && i+1 < len(args) {
				s.RunField(args[i+1], shell.Stream{}) // tests the archive
			} else if cmd, ok := strings.CutPrefix(a.Code(), "--unzip-command="); ok {
				s.Run(cmd, shell.Stream{})
			}
		}
		for _, a := range p.Args {
			if place.IsCredential(a.Text) || place.IsCredentialDir(a.Text) {
				s.Add(detector.CredentialRead)
			}
		}
	case "7z", "7za":
		if len(args) > 1 && args[0].Text == "d" {
			s.Add(detector.ForcedDelete)
		}
		for _, a := range args {
			if a.Text == "-sdel" {
				s.Add(detector.ForcedDelete)
			}
		}
	case "rclone":
		s.sends(p.Args)
		if shell.OneOf(p.Arg(0), "delete", "purge", "sync", "deletefile", "rmdir", "rmdirs", "cleanup", "move", "moveto") {
			s.Add(detector.RecursiveDelete)
		}
	default:
		s.sends(p.Args)
		if p.Any("rm", "rb", "del", "delete", "remove", "purge", "delete-file-version", "delete-bucket", "delete-key") ||
			p.Any("rsync", "sync", "mirror") && p.Has("d", "delete", "delete-removed", "remove") {
			s.Add(detector.Teardown)
		}
	}
}

// untar follows an archive that is unpacked, so that what comes from elsewhere is
// known when it runs.
func (s rules) untar(args []shell.Field, in shell.Stream) {
	const longest = 32 // letters of options
	if len(args) > 0 && len(args[0].Text) <= longest && !strings.HasPrefix(args[0].Text, "-") {
		first := args[0]
		first.Text = "-" + first.Text // the old form
		args = append([]shell.Field{first}, args[1:]...)
	}
	p := shell.ParseFlags(args, "fCTIXKbgHNVF", "file directory files-from use-compress-program exclude strip-components transform")
	if !p.Has("x", "extract", "get") {
		return
	}
	if file, ok := p.Value("f", "file"); ok && file.Text != "-" {
		in = s.Open(file)
	}
	dir, _ := p.Value("C", "directory")
	s.unpack(in, dir.Text)
}

func (s rules) unpack(archive shell.Stream, dir string) {
	if archive.From&shell.Runnable != 0 {
		s.Unpack(dir, archive.From)
	}
}
