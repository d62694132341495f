package clickhouse

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/ClickHouse/ch-go/proto"
)

// A Typed tells whether the columns of a stored row are those of its raw bytes.
// It encodes rows as inserts do. It is not for concurrent use.
type Typed struct {
	columns []column // the last one is added
	buf     proto.Buffer
	one     []ingest.Row
}

// added is the column of 0017_evidence.sql. Rows that an older collector stored
// have none.
const added = "evidence"

// LeafSQL is the expression for the leaf of a row of events, as a FixedString(32). Of a
// stand-in it is what that claims, see evidence.OpenStandIn: who checks the session finds
// whether the host has signed it.
const LeafSQL = "if(JSONHas(" + added + ", 'stands_for'), toFixedString(substring(tryBase64Decode(JSONExtractString(" + added + ", 'stands_for', 'leaf')), 1, 32), 32), SHA256(concat(char(0), raw)))"

// NewTyped returns a Typed.
func NewTyped() *Typed {
	t := &Typed{columns: eventColumns(), one: make([]ingest.Row, 1)}
	t.columns = slices.DeleteFunc(t.columns, func(c column) bool {
		// The others say how the row came here.
		return c.name == "raw" || strings.HasPrefix(c.name, "kafka_")
	})
	slices.SortStableFunc(t.columns, func(a, b column) int {
		switch {
		case a.name == added:
			return 1
		case b.name == added:
			return -1
		}
		return 0
	})
	return t
}

// Row returns the row that the other methods compare, which the caller fills: what
// an insert of its raw bytes would store.
func (t *Typed) Row() *ingest.Row { return &t.one[0] }

// SQL returns the expression whose value Agrees compares: a hash of all columns, as
// a FixedString(32).
func (t *Typed) SQL() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "`" + c.name + "`"
	}
	return "SHA256(formatRow('RowBinary', " + strings.Join(names, ", ") + "))"
}

// Agrees reports whether a stored row, of which the expression of SQL has this value,
// is what an insert of Row would store, of this collector or of an older one.
func (t *Typed) Agrees(hash string) bool {
	return t.agrees(hash) || t.unbounded(func() bool { return t.agrees(hash) })
}

// unbounded calls f while Row has the operations that an older collector stored.
func (t *Typed) unbounded(f func() bool) bool {
	row := t.Row()
	bounded := row.Operations
	defer func() { row.Operations = bounded }()
	row.Operations = audit.WholeOperations(&row.Record)
	return f()
}

func (t *Typed) agrees(hash string) bool {
	t.buf.Reset()
	older := 0
	for _, c := range t.columns {
		older = len(t.buf.Buf)
		appendValue(&t.buf, c, t.one)
	}
	if sum := sha256.Sum256(t.buf.Buf); hash == string(sum[:]) {
		return true
	}
	sum := sha256.Sum256(append(t.buf.Buf[:older], 0)) // no text
	return hash == string(sum[:])
}

// Differing returns the names of the columns in which a stored row differs from Row.
// value is what the expression of ColumnSQL has for each of them.
func (t *Typed) Differing(value func(column int) string) (names []string) {
	for i, c := range t.columns {
		v := value(i)
		has := func() bool {
			t.buf.Reset()
			appendValue(&t.buf, c, t.one)
			return v == string(t.buf.Buf)
		}
		if !has() && (c.name != added || v != "\x00") && !t.unbounded(has) {
			names = append(names, c.name)
		}
	}
	return names
}

// ColumnSQL returns the expression of an array that has the value of each column.
func (t *Typed) ColumnSQL() string {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = "formatRow('RowBinary', `" + c.name + "`)"
	}
	return "[" + strings.Join(values, ", ") + "]"
}

// appendValue appends the value of a column in one row, as the format RowBinary
// has it: as Native has a column of one row, but for types that are more than
// their values there.
func appendValue(to *proto.Buffer, c column, one []ingest.Row) {
	start := len(to.Buf)
	c.put(to, one)
	native := to.Buf[start:]
	switch typ := string(c.typ); {
	case strings.HasPrefix(typ, "LowCardinality"):
		// putWords: three numbers, the dictionary of one word, the number of keys, a key.
		to.Buf = append(to.Buf[:start], native[24:len(native)-9]...)
	case strings.HasPrefix(typ, "Nullable"):
		if native[0] == 1 {
			to.Buf = to.Buf[:start+1]
		}
	case strings.HasPrefix(typ, "Array"):
		n, elements := binary.LittleEndian.Uint64(native), native[8:]
		to.Buf = append(binary.AppendUvarint(to.Buf[:start], n), elements...)
	}
}
