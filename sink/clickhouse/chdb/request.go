//go:build linux || darwin

package chdb

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
)

const (
	maxStatement = 16 << 20 // bytes of a statement with the data in it
	maxRevision  = 1 << 20  // larger ones are not protocol versions
)

// A request is a client's request to ClickHouse's HTTP interface.
type request struct {
	sql      string
	data     io.Reader // the bytes after the statement; nil if none
	database string
	format   string // of the answer, if the statement names none
	revision uint64 // of the client's native protocol; 0: blocks without a header
	compress *compress.Method
	settings []param
	params   []param
}

// notSettings are URL parameters that are not settings, or have no effect
// here: the engine has no users, quotas, roles and sessions, and an answer is
// never buffered as a whole.
var notSettings = []string{
	"query", "database", "default_format", "client_protocol_version", "compress", "decompress", "query_id",
	"user", "password", "quota_key", "role", "wait_end_of_query", "buffer_size", "http_write_exception_in_output_format",
}

// readRequest reads a request except the data of an INSERT.
func readRequest(r *http.Request) (request, error) {
	url := r.URL.Query()
	q := request{
		sql:      url.Get("query"),
		database: url.Get("database"),
		format:   url.Get("default_format"),
	}
	if q.format == "" {
		q.format = "TabSeparated"
	}
	if v := url.Get("client_protocol_version"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n > maxRevision {
			return q, exceptionf(codeBadArguments, "client_protocol_version is %q, want a number", v)
		}
		q.revision = n
	}
	if err := q.readSettings(url); err != nil {
		return q, err
	}
	if isTrue(url.Get("compress")) {
		method := compress.LZ4
		if strings.EqualFold(url.Get("network_compression_method"), "ZSTD") {
			method = compress.ZSTD
		}
		q.compress = &method
	}
	return q, q.readBody(r, isTrue(url.Get("decompress")))
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// readSettings takes the parameters and settings in the order of their names,
// so that the reported mistake is always the same.
func (q *request) readSettings(url url.Values) error {
	names := make([]string, 0, len(url))
	for name := range url {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := param{name, url.Get(name)}
		switch bare, isParam := strings.CutPrefix(name, "param_"); {
		case isParam:
			q.params = append(q.params, param{bare, p.value})
		case name == "session_id":
			return exceptionf(codeBadArguments, "there are no sessions here: send the settings with every statement")
		case !slices.Contains(notSettings, name):
			q.settings = append(q.settings, p)
		}
	}
	return nil
}

// readBody reads the statement from the body, unless it is in the URL.
func (q *request) readBody(r *http.Request, compressed bool) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return exceptionf(codeBadArguments, "Content-Encoding is %q, want none: LZ4 goes by decompress=1", enc)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return exceptionf(codeBadArguments, "external tables are not supported")
	}
	body := io.Reader(r.Body)
	if compressed {
		body = compress.NewReader(body)
	}
	if q.sql != "" {
		if r.ContentLength != 0 {
			q.data = body
		}
		return nil
	}
	text, err := readStatement(body)
	q.sql = text
	return err
}

func readStatement(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxStatement+1))
	if err != nil {
		return "", exceptionf(codeBadArguments, "the statement ended early: %v", err)
	}
	if len(text) > maxStatement {
		return "", exceptionf(codeBadArguments, "the statement is longer than %d bytes", maxStatement)
	}
	return string(text), nil
}

// readerSettings are the settings that a reader may set: formats of an
// answer, and lower limits. Not all others are harmless, and the engine
// itself lets a reader set none.
var readerSettings = regexp.MustCompile(`^(output_format_(json|csv|tsv|pretty|native)_\w+|date_time_output_format|session_timezone|extremes|final|` +
	`use_skip_indexes_if_final_exact_mode|max_block_size|max_threads|max_execution_time|max_result_rows|max_result_bytes|result_overflow_mode|network_\w+)$`)

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// set writes a statement that sets settings, whose unknown names and bad
// values the engine reports.
func set(settings []param) (string, error) {
	var b strings.Builder
	b.WriteString("SET ")
	for i, s := range settings {
		if !settingName.MatchString(s.name) {
			return "", exceptionf(codeUnknownSetting, "%q is not a setting", s.name)
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.name + " = " + quote(s.value))
	}
	return b.String(), nil
}

var quoteEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// quote writes a string literal.
func quote(s string) string { return "'" + quoteEscapes.Replace(s) + "'" }

var nameEscapes = strings.NewReplacer(`\`, `\\`, "`", "\\`")

// quoteName writes a quoted name.
func quoteName(s string) string { return "`" + nameEscapes.Replace(s) + "`" }
