package query

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"

	"github.com/ClickHouse/clickhouse-go/v2/lib/chcol"
)

// A Writer writes the rows of a statement.
type Writer interface {
	header(names []string) error
	row(values []any) error // as plainValue returns them
	end() error
}

// NewWriter returns a writer of a format: table, json or csv. It returns false
// for another. On a terminal it escapes what could control it.
func NewWriter(format string, w io.Writer, terminal bool) (Writer, bool) {
	switch format {
	case "table":
		return &tableWriter{w: w}, true
	case "json":
		return &jsonWriter{w: w}, true
	case "csv":
		return &csvWriter{w: csv.NewWriter(w), escape: terminal}, true
	}
	return nil, false
}

// plainValue converts what the driver scans to JSON's types: times are RFC
// 3339, numbers that JSON lacks are nil. It returns an error for a type that
// would print as another value.
func plainValue(v reflect.Value, t columnType) (any, error) {
	t = t.bare()
	switch v.Kind() {
	case reflect.Invalid: // of a Variant that is NULL
		return nil, nil
	case reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return plainValue(v.Elem(), t)
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		if s, ok := v.Interface().(fmt.Stringer); ok && v.Type() != reflect.TypeFor[*time.Time]() {
			return s.String(), nil
		}
		return plainValue(v.Elem(), t)
	case reflect.String:
		return v.String(), nil
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, nil
		}
		return v.Interface(), nil
	case reflect.Slice, reflect.Array:
		if s, ok := v.Interface().(fmt.Stringer); ok { // a UUID or an address
			return s.String(), nil
		}
		list := make([]any, v.Len())
		for i := range list {
			var err error
			if list[i], err = plainValue(v.Index(i), t.element(i)); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Map:
		return plainMap(v, t)
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format(timeLayout(string(t))), nil
	case fmt.Stringer:
		return x.String(), nil
	case chcol.Variant:
		if x.Type() != "SharedVariant" { // its values are bytes
			return plainValue(reflect.ValueOf(x.Any()), columnType(x.Type()))
		}
	}
	if v.Kind() == reflect.Struct { // of JSON, the driver leaves out what is in no column of its own
		return nil, fmt.Errorf("type %s is not supported: convert it with toString", t)
	}
	return v.Interface(), nil
}

func plainMap(v reflect.Value, t columnType) (any, error) {
	object := make(map[string]any, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		key, err := plainValue(entries.Key(), t.element(0))
		if err != nil {
			return nil, err
		}
		if key == nil { // as ClickHouse writes a number that JSON lacks
			key = strings.TrimPrefix(strings.ToLower(fmt.Sprint(entries.Key())), "+")
		}
		name := fmt.Sprint(key)
		if object[name], err = plainValue(entries.Value(), t.member(name)); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// dateTime64 finds how many digits the seconds of a type have.
var dateTime64 = regexp.MustCompile(`DateTime64\((\d)`)

// timeLayout returns the layout for the times of a type, all of one width.
func timeLayout(t string) string {
	switch m := dateTime64.FindStringSubmatch(t); {
	case m != nil && m[1] != "0":
		return "2006-01-02T15:04:05." + strings.Repeat("0", int(m[1][0]-'0')) + "Z07:00"
	case strings.Contains(t, "Date") && !strings.Contains(t, "DateTime"):
		return time.DateOnly
	case t == "": // within another value
		return time.RFC3339Nano
	default:
		return time.RFC3339
	}
}

// texts applies text to all texts in a value that plainValue returned.
func texts(v any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[text(name)] = texts(member)
		}
		return object
	}
	return v
}

// text returns s, or its escaped bytes if it is not text: JSON cannot represent
// bytes.
func text(s string) string {
	if !utf8.ValidString(s) {
		return escape.Text(s)
	}
	return s
}

// encode writes a value as JSON that cannot control a terminal.
func encode(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(texts(v)); err != nil {
		return "", err
	}
	return string(escape.AppendJSON(nil, []byte(strings.TrimSuffix(b.String(), "\n")))), nil
}

// cell writes a value for a table or CSV.
func cell(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return encode(v)
}

// A jsonWriter writes one object a line, its members in the order of the
// columns.
type jsonWriter struct {
	w     io.Writer
	names []string // as JSON
}

func (j *jsonWriter) header(names []string) error {
	for _, name := range names {
		s, err := encode(name)
		if err != nil {
			return err
		}
		j.names = append(j.names, s)
	}
	return nil
}

func (j *jsonWriter) row(values []any) error {
	var b strings.Builder
	for i, v := range values {
		s, err := encode(v)
		if err != nil {
			return err
		}
		b.WriteString("," + j.names[i] + ":" + s)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(j.w, "{"+strings.TrimPrefix(b.String(), ","))
	return err
}

func (j *jsonWriter) end() error { return nil }

// A csvWriter writes RFC 4180 with a header. A missing value is empty.
type csvWriter struct {
	w      *csv.Writer
	escape bool
}

func (c *csvWriter) header(names []string) error { return c.write(names) }

func (c *csvWriter) row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		if v == nil {
			continue
		}
		var err error
		if cells[i], err = cell(v); err != nil {
			return err
		}
	}
	return c.write(cells)
}

func (c *csvWriter) write(cells []string) error {
	if c.escape {
		cells = escapeAll(cells)
	}
	return c.w.Write(cells)
}

func (c *csvWriter) end() error {
	c.w.Flush()
	return c.w.Error()
}

// alignedRows is how many rows decide a table's column widths. Later rows are
// printed as they arrive.
const alignedRows = 1000

// A tableWriter aligns columns and escapes their text, on a terminal or not: a
// row is a line.
type tableWriter struct {
	w      io.Writer
	held   [][]string // the header and rows until the widths are known
	widths []int
}

func (t *tableWriter) header(names []string) error {
	t.hold(names)
	return nil
}

func (t *tableWriter) row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		var err error
		if v == nil {
			cells[i] = "NULL"
		} else if cells[i], err = cell(v); err != nil {
			return err
		}
	}
	if len(t.held) == 0 {
		return t.print(escapeAll(cells))
	}
	t.hold(cells)
	if len(t.held) > alignedRows {
		return t.end()
	}
	return nil
}

func escapeAll(cells []string) []string {
	escaped := make([]string, len(cells))
	for i, s := range cells {
		escaped[i] = escape.Text(s)
	}
	return escaped
}

func (t *tableWriter) hold(cells []string) {
	cells = escapeAll(cells)
	if t.widths == nil {
		t.widths = make([]int, len(cells))
	}
	for i, s := range cells {
		t.widths[i] = max(t.widths[i], terminal.Cells(s))
	}
	t.held = append(t.held, cells)
}

// end prints the held rows, after which rows are printed as they arrive.
func (t *tableWriter) end() error {
	for _, cells := range t.held {
		if err := t.print(cells); err != nil {
			return err
		}
	}
	t.held = nil
	return nil
}

func (t *tableWriter) print(cells []string) error {
	var b strings.Builder
	for i, s := range cells {
		b.WriteString(s)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(0, t.widths[i]-terminal.Cells(s))+2))
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(t.w, b.String())
	return err
}
