package exportfile

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"

	"github.com/parquet-go/parquet-go"
)

// A row group is in memory until it is written.
const (
	groupBytes = 32 << 20 // of records
	groupRows  = 100_000
)

// table is the structure of the rows: a struct with a field for each column, in
// their order.
var table = sync.OnceValue(func() (t struct {
	columns []column
	row     reflect.Type
	schema  *parquet.Schema
}) {
	t.columns = columns()
	var fields []reflect.StructField
	for i, c := range t.columns {
		typ, tag := reflect.TypeFor[string](), c.name
		switch c.kind {
		case bytesKind:
			typ = reflect.TypeFor[[]byte]()
		case listKind:
			typ, tag = reflect.TypeFor[[]string](), tag+",list"
		case boolKind:
			typ = reflect.TypeFor[bool]()
		case intKind:
			typ = reflect.TypeFor[int64]()
		case uintKind:
			typ = reflect.TypeFor[uint64]()
		case floatKind:
			typ = reflect.TypeFor[float64]()
		case timeKind:
			typ, tag = reflect.TypeFor[int64](), tag+",timestamp(microsecond)"
		}
		if c.optional {
			typ, tag = reflect.PointerTo(typ), tag+",optional"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: typ, Tag: reflect.StructTag(`parquet:"` + tag + `,zstd"`)})
	}
	t.row = reflect.StructOf(fields)
	t.schema = parquet.NewSchema("record", parquet.SchemaOf(reflect.New(t.row).Interface()))
	return t
})

// A parquetWriter writes the rows of one file. Its memory is that of a row group.
type parquetWriter struct {
	w     *parquet.GenericWriter[any]
	row   reflect.Value // reused
	bytes int           // of records in the row group
	rows  int
}

func newParquetWriter(w io.Writer) *parquetWriter {
	t := table()
	// With its smallest and its largest value in full, the header of a page can be
	// longer than the page. Readers have them in the index of the column too, where
	// they are cut, and for all of a row group; a long text has none there.
	options := []parquet.WriterOption{t.schema, parquet.CreatedBy("auditcollector", "", ""), parquet.DataPageStatistics(false)}
	for _, c := range t.columns {
		if c.long {
			options = append(options, parquet.SkipPageBounds(c.name))
		}
	}
	return &parquetWriter{w: parquet.NewGenericWriter[any](w, options...), row: reflect.New(t.row).Elem()}
}

func (p *parquetWriter) add(r *receiver.Record) error {
	for i, c := range table().columns {
		set(p.row.Field(i), c.value(r))
	}
	if _, err := p.w.Write([]any{p.row.Addr().Interface()}); err != nil {
		return err
	}
	p.rows++
	if p.bytes += len(r.Raw); p.bytes < groupBytes && p.rows < groupRows {
		return nil
	}
	p.bytes, p.rows = 0, 0
	return p.w.Flush()
}

// set sets a field to the value of a column.
func set(field reflect.Value, v any) {
	if t, ok := v.(time.Time); ok {
		v = t.UnixMicro()
	}
	if field.Kind() == reflect.Pointer {
		if v == nil {
			field.SetZero()
			return
		}
		if field.IsNil() {
			field.Set(reflect.New(field.Type().Elem()))
		}
		field = field.Elem()
	}
	switch x := v.(type) {
	case string:
		if field.Kind() == reflect.Slice {
			field.SetBytes([]byte(x))
			return
		}
		field.SetString(strings.ToValidUTF8(x, "\uFFFD")) // readers refuse other bytes
	case []string:
		valid := make([]string, len(x))
		for i, s := range x {
			valid[i] = strings.ToValidUTF8(s, "\uFFFD")
		}
		field.Set(reflect.ValueOf(valid))
	default:
		field.Set(reflect.ValueOf(x))
	}
}

// close writes what is left, without which the file is not one.
func (p *parquetWriter) close() error { return p.w.Close() }

// A parquetStream writes one file to a stream.
type parquetStream struct{ *parquetWriter }

func (parquetStream) commit(source.Position, bool) error { return nil }

func (parquetStream) files() []string { return nil }
