package clickhouse

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"auditproxy/collector/ingest"

	"github.com/ClickHouse/ch-go/proto"
)

// A Typed tells whether the columns of a stored row are those of its raw bytes.
// It encodes rows as inserts do. It is not for concurrent use.
type Typed struct {
	columns []column
	buf     proto.Buffer
	one     []ingest.Row
}

// added is the column of 0017_evidence.sql. Rows that an older collector stored
// have none.
const added = "evidence"

// NewTyped returns a Typed.
func NewTyped() *Typed {
	t := &Typed{columns: eventColumns(), one: make([]ingest.Row, 1)}
	t.columns = slices.DeleteFunc(t.columns, func(c column) bool {
		// The others say how the row came here.
		return c.name == "raw" || c.name == added || strings.HasPrefix(c.name, "kafka_")
	})
	return t
}

// SQL returns the expressions whose values Agrees compares, each a
// FixedString(32): a hash of all columns, and one of the column that may be empty.
// As a String they would lose the zeros at their ends.
func (t *Typed) SQL() (all, younger string) {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "`" + c.name + "`"
	}
	return "SHA256(formatRow('RowBinary', " + strings.Join(names, ", ") + "))", "if(" + added + " = '', toFixedString('', 32), SHA256(" + added + "))"
}

// Agrees reports whether a stored row, of which the expressions of SQL have these
// values, is what an insert of this row would store.
func (t *Typed) Agrees(r *ingest.Row, all, younger string) bool {
	t.buf.Reset()
	t.one[0] = *r
	for _, c := range t.columns {
		appendValue(&t.buf, c, t.one)
	}
	sum := sha256.Sum256(t.buf.Buf)
	if all != string(sum[:]) {
		return false
	}
	if younger == string(make([]byte, sha256.Size)) {
		return true
	}
	sum = sha256.Sum256([]byte(r.Record.Evidence))
	return younger == string(sum[:])
}

// Differing returns the names of the columns in which a stored row differs. value
// is what the expression of ColumnSQL has for each of them.
func (t *Typed) Differing(r *ingest.Row, value func(column int) string) (names []string) {
	t.one[0] = *r
	for i, c := range t.columns {
		t.buf.Reset()
		appendValue(&t.buf, c, t.one)
		if value(i) != string(t.buf.Buf) {
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
