package exportfile

import (
	"fmt"
	"strings"

	"auditproxy/collector/export/receiver"
)

// The names of formats.
const (
	ndjsonName  = "ndjson"
	csvName     = "csv"
	ocsfName    = "ocsf"
	parquetName = "parquet"
)

// Names are the names of the formats.
func Names() []string { return []string{ocsfName, ndjsonName, csvName, parquetName} }

// A Format is how records are written.
type Format struct {
	name   string
	header string // the first line, with its line feed; "" for none
	// encode appends the line of a record without its line feed, nothing if there
	// is none.
	encode func(dst []byte, r *receiver.Record) ([]byte, error)
	text   bool // lines are not JSON
}

// NewFormat returns the format with a name. ocsf appends a record's event.
func NewFormat(name string, ocsf func(dst []byte, r *receiver.Record) ([]byte, error)) (Format, error) {
	switch name {
	case ndjsonName:
		// The bytes that the record's evidence covers.
		return Format{name: name, encode: func(dst []byte, r *receiver.Record) ([]byte, error) { return append(dst, r.Raw...), nil }}, nil
	case ocsfName:
		return Format{name: name, encode: ocsf}, nil
	case csvName:
		return Format{name: name, header: csvHeader(), encode: appendCSV, text: true}, nil
	case parquetName:
		return Format{name: name}, nil
	}
	return Format{}, fmt.Errorf("--format is %q, want %s", name, strings.Join(Names(), ", "))
}

// String returns the name of the format.
func (f Format) String() string { return f.name }
