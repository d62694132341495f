package shell

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/detector"
)

// Open returns what reading the file gives.
func (s *Shell) Open(f Field) Stream {
	switch {
	case f.Reads != nil:
		return *f.Reads
	case f.Text == "/dev/null":
		return Stream{Kind: Empty}
	case f.Unknown:
		return Stream{Kind: File, Text: f.Text}
	}
	if place.IsCredential(f.Text) {
		s.Add(detector.CredentialRead)
	}
	if place.IsNetwork(f.Text) {
		return Stream{Kind: Unknown, From: detector.RemoteExec}
	}
	if file, ok := s.files[path.Clean(f.Text)]; ok {
		return file
	}
	return Stream{Kind: File, Text: path.Clean(f.Text)}
}

// Write judges that a command's output goes to a file.
func (s *Shell) Write(f Field, body Stream, truncate bool) {
	if body.Kind != Empty || !place.IsNetwork(f.Text) { // opening a connection looks whether something listens
		s.WriteTo(f)
	}
	if f.Reads != nil || place.IsStandardDevice(f.Text) {
		return
	}
	if truncate && body.Kind == Empty && !strings.HasPrefix(f.Text, "/dev/") {
		s.Add(detector.EmptyFile)
	}
	if f.Unknown {
		return
	}
	if s.files == nil {
		s.files = map[string]Stream{}
	}
	name := path.Clean(f.Text)
	if !truncate {
		if old, ok := s.files[name]; ok {
			body = old.FollowedBy(body)
		}
	}
	if body.Kind == File {
		body = Stream{Kind: Unknown, From: body.From}
	}
	s.files[name] = body
}

// WriteTo judges the path that something is written to.
func (s *Shell) WriteTo(f Field) {
	name := f.Text
	switch {
	case place.IsDevice(name):
		s.Add(detector.DeviceWrite)
	case place.IsNetwork(name):
		s.Add(detector.Exfiltration)
	case name == "/proc/sysrq-trigger":
		s.Add(detector.Shutdown)
	case place.IsStartup(name):
		s.Add(detector.Persistence)
	case s.IsOwn(name):
		s.Add(detector.AuditTampering)
	case place.IsKernelHook(name):
		s.Add(detector.PrivilegeEscalation)
	case place.IsProtection(name):
		s.Add(detector.ProtectionOff)
	}
}

// IsOwn reports whether the path is one of this program's: a path that it was told, or
// where its files and its collector's are by default, and installed programs.
func (s *Shell) IsOwn(name string) bool {
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") || len(name) > place.MaxPath {
		return false // in a directory of its source, or no path
	}
	name = path.Clean(name)
	for _, own := range s.own {
		if rest, ok := strings.CutPrefix(name, own); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	for _, program := range [...]string{"auditproxy", "auditcollector"} {
		if !strings.Contains(name, program) {
			continue
		}
		for _, dir := range [...]string{".config/", ".local/state/", "Library/Application Support/"} {
			if place.IsBelow(name+"/", dir+program) {
				return true
			}
		}
		for _, dir := range [...]string{"/etc/", "/var/lib/"} {
			if rest, ok := strings.CutPrefix(name, dir+program); ok && (rest == "" || rest[0] == '/') {
				return true
			}
		}
		if strings.HasSuffix(name, "/bin/"+program) {
			return true
		}
	}
	return false
}

// Known returns what running a file would be that the text wrote, downloaded or
// unpacked.
func (s *Shell) Known(name string) detector.Set {
	f, _ := s.file(path.Clean(name))
	return f.From & Runnable
}

// Written returns what the text wrote into a file, if that is known.
func (s *Shell) Written(name string) string {
	if file := s.files[name]; file.Kind == Text {
		return file.Text
	}
	return ""
}

// CopyFile makes to have what from has, if that is known.
func (s *Shell) CopyFile(from, to string) {
	if file, ok := s.files[path.Clean(from)]; ok {
		s.files[path.Clean(to)] = file
	}
}

// Unpack notes that an archive is unpacked below a directory, the current one if
// it is empty.
func (s *Shell) Unpack(dir string, from detector.Set) {
	if s.unpacked == nil {
		s.unpacked = map[string]Stream{}
	}
	s.unpacked[path.Clean(dir)] = Stream{Kind: Unknown, From: from & Runnable}
}

// enter notes that the current directory is one below which something is unpacked.
func (s *Shell) enter(args []Field) {
	for _, a := range args {
		if a.Unknown || strings.HasPrefix(a.Text, "-") {
			continue
		}
		if f, ok := s.file(path.Clean(a.Text) + "/"); ok {
			s.Unpack("", f.From)
		}
	}
}

// file returns what is known of a file that the text wrote, downloaded or
// unpacked. The name is clean.
func (s *Shell) file(name string) (Stream, bool) {
	if f, ok := s.files[name]; ok || len(s.unpacked) == 0 {
		return f, ok
	}
	const most = 8 // directories above it that are looked at
	for range most {
		at := strings.LastIndexByte(name, '/')
		switch {
		case at < 0:
			f, ok := s.unpacked["."]
			return f, ok
		case at == 0:
			f, ok := s.unpacked["/"]
			return f, ok
		}
		name = name[:at]
		if f, ok := s.unpacked[name]; ok {
			return f, true
		}
	}
	return Stream{}, false
}
