package receivers

import (
	"fmt"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/alert"
)

// The formats.
const (
	OTLP   = "otlp"
	OCSF   = "ocsf"
	NDJSON = "ndjson"
)

// OTLPName is the name of the receiver that is configured by keys.
const OTLPName = "otlp"

// A Spec describes a receiver. One of the targets is not nil.
type Spec struct {
	Name      string
	Format    string
	Filter    *alert.Filter // nil: it gets all records
	Since     time.Time     // zero: now
	Alerts    bool          // it gets alerts too
	Raw       bool          // events have the record's line
	Arguments bool          // attributes have the arguments

	OTLP  *OTLPTarget
	Kafka *KafkaTarget
	File  *FileTarget
	HTTP  *HTTPTarget

	at string // FILE:LINE:COLUMN
}

// Problem returns an error about s.
func (s Spec) Problem(err error) error {
	if s.at == "" {
		return fmt.Errorf("receiver %q: %w", s.Name, err)
	}
	return fmt.Errorf("%s: receiver %q: %w", s.at, s.Name, err)
}

// An OTLPTarget is a receiver of OpenTelemetry's protocol.
type OTLPTarget struct {
	Endpoint, Protocol, HeadersFile, Compression string

	Timeout  time.Duration
	Insecure bool
	TLS      *cli.TLSFiles
	Signals  []string
}

// A KafkaTarget is a topic.
type KafkaTarget struct {
	Brokers                       []string
	Topic, Type                   string
	TLS                           *cli.TLSFiles
	Mechanism, User, PasswordFile string
}

// A FileTarget is a file with rotation.
type FileTarget struct {
	Path    string
	Mode    uint32
	MaxSize int64
	Keep    int
	KeepFor time.Duration
}

// An HTTPTarget is an address to which batches are posted.
type HTTPTarget struct {
	URL, URLFile, HeadersFile, Body string

	Gzip        bool
	BatchBytes  int64
	BatchEvents int
	Timeout     time.Duration
	TLS         *cli.TLSFiles
}
