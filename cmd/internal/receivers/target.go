package receivers

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/alert"
	"auditproxy/collector/yamlfile"

	"go.yaml.in/yaml/v3"
)

// A loader reads one file.
type loader struct {
	*yamlfile.File
	seen    map[string]string // positions of receivers by name
	written map[string]string // positions of receivers by the file that they write
	paths   alert.Paths
	now     time.Time
}

func (l *loader) otlp(n *yaml.Node) *OTLPTarget {
	t := &OTLPTarget{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"endpoint":     func(n *yaml.Node) { t.Endpoint = l.Text(n) },
		"protocol":     func(n *yaml.Node) { t.Protocol = l.Choice(n, "grpc", "http/protobuf") },
		"headers_file": func(n *yaml.Node) { t.HeadersFile = l.path(n) },
		"compression":  func(n *yaml.Node) { t.Compression = l.Choice(n, "none", "gzip") },
		"timeout":      func(n *yaml.Node) { t.Timeout = l.Duration(n) },
		"insecure":     func(n *yaml.Node) { t.Insecure = l.Bool(n) },
		"tls":          func(n *yaml.Node) { t.TLS = l.tls(n) },
		"signals": func(n *yaml.Node) {
			for i, s := range l.Texts(n) {
				if s != "logs" && s != "traces" && s != "metrics" {
					l.Problem(n.Content[i], "%q is not a signal, want logs, traces or metrics", s)
				}
				t.Signals = append(t.Signals, s)
			}
		},
	})
	if ok && !yamlfile.Has(n, "endpoint") {
		l.Problem(n, "otlp needs endpoint")
	}
	return t
}

func (l *loader) kafka(n *yaml.Node) *KafkaTarget {
	t := &KafkaTarget{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"brokers": func(n *yaml.Node) { t.Brokers = l.Texts(n) },
		"topic": func(n *yaml.Node) {
			t.Topic = l.Text(n)
			if err := cli.CheckTopic(t.Topic); err != nil {
				l.Problem(n, "%s", err)
			}
		},
		"type": func(n *yaml.Node) { t.Type = l.Text(n) },
		"tls":  func(n *yaml.Node) { t.TLS = l.tls(n) },
		"sasl": func(n *yaml.Node) {
			ok := l.Mapping(n, map[string]func(*yaml.Node){
				"mechanism":     func(n *yaml.Node) { t.Mechanism = l.Choice(n, "plain", "scram-sha-256", "scram-sha-512") },
				"username":      func(n *yaml.Node) { t.User = l.Text(n) },
				"password_file": func(n *yaml.Node) { t.PasswordFile = l.path(n) },
			})
			if ok && !(yamlfile.Has(n, "mechanism") && yamlfile.Has(n, "username") && yamlfile.Has(n, "password_file")) {
				l.Problem(n, "sasl needs mechanism, username and password_file")
			}
		},
	})
	if ok && !(yamlfile.Has(n, "brokers") && yamlfile.Has(n, "topic")) {
		l.Problem(n, "kafka needs brokers and topic")
	}
	return t
}

func (l *loader) file(n *yaml.Node) *FileTarget {
	t := &FileTarget{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"path": func(n *yaml.Node) { t.Path = l.writes(n) },
		"mode": func(n *yaml.Node) {
			if mode, err := strconv.ParseUint(n.Value, 8, 32); err == nil && (mode == 0o600 || mode == 0o640) {
				t.Mode = uint32(mode)
			} else {
				l.Problem(n, "%q is not a mode here, want 0600 or 0640", n.Value)
			}
		},
		"max_size": func(n *yaml.Node) { t.MaxSize = l.size(n) },
		"keep":     func(n *yaml.Node) { t.Keep = int(l.Count(n)) },
		"keep_for": func(n *yaml.Node) { t.KeepFor = l.Duration(n) },
	})
	if ok && !yamlfile.Has(n, "path") {
		l.Problem(n, "file needs path")
	}
	return t
}

func (l *loader) http(n *yaml.Node) *HTTPTarget {
	t := &HTTPTarget{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"url": func(n *yaml.Node) {
			t.URL = l.Text(n)
			if u, err := url.Parse(t.URL); err == nil && u.User != nil {
				l.Problem(n, "the address has a password: put it in a file, and name that in url_file")
			}
		},
		"url_file":     func(n *yaml.Node) { t.URLFile = l.path(n) },
		"headers_file": func(n *yaml.Node) { t.HeadersFile = l.path(n) },
		"body":         func(n *yaml.Node) { t.Body = l.Choice(n, "ndjson", "array") },
		"gzip":         func(n *yaml.Node) { t.Gzip = l.Bool(n) },
		"batch_bytes":  func(n *yaml.Node) { t.BatchBytes = l.size(n) },
		"batch_events": func(n *yaml.Node) { t.BatchEvents = int(l.Count(n)) },
		"timeout":      func(n *yaml.Node) { t.Timeout = l.Duration(n) },
		"tls":          func(n *yaml.Node) { t.TLS = l.tls(n) },
	})
	if ok && yamlfile.Has(n, "url") == yamlfile.Has(n, "url_file") {
		l.Problem(n, "http needs url or url_file, one of them")
	}
	return t
}

func (l *loader) tls(n *yaml.Node) *cli.TLSFiles {
	t := &cli.TLSFiles{}
	l.Mapping(n, map[string]func(*yaml.Node){
		"ca_file":     func(n *yaml.Node) { t.CA = l.path(n) },
		"cert_file":   func(n *yaml.Node) { t.Cert = l.path(n) },
		"key_file":    func(n *yaml.Node) { t.Key = l.path(n) },
		"server_name": func(n *yaml.Node) { t.ServerName = l.Text(n) },
	})
	if (t.Cert == "") != (t.Key == "") {
		l.Problem(n, "want both cert_file and key_file, or none")
	}
	return t
}

// path returns an absolute path: no user chooses the collector's working directory.
func (l *loader) path(n *yaml.Node) string {
	path := l.Text(n)
	if !filepath.IsAbs(path) && path != "?" {
		l.Problem(n, "%q is not an absolute path", path)
	}
	return path
}

// writes returns the path of a file that no other receiver writes: its lock is for
// one.
func (l *loader) writes(n *yaml.Node) string {
	path := l.path(n)
	real := filepath.Clean(path)
	if file, err := filepath.EvalSymlinks(real); err == nil {
		real = file
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(real)); err == nil { // the first start makes the file
		real = filepath.Join(dir, filepath.Base(real))
	}
	if where, twice := l.written[real]; twice {
		l.Problem(n, "%q is the file of the receiver at %s: name another file", path, where)
	}
	l.written[real] = fmt.Sprintf("%s:%d", l.Name, n.Line)
	return path
}

func (l *loader) size(n *yaml.Node) int64 {
	size, err := cli.ParseSize(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || size < 64<<10 {
		l.Problem(n, "%q is not a size here, want at least 64KiB, such as 1MiB", n.Value)
	}
	return size
}
