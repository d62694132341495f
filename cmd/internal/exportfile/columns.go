package exportfile

import (
	"fmt"
	"math"
	"strings"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"
)

// A kind is the type of a column.
type kind uint8

const (
	textKind kind = iota
	bytesKind
	listKind // of texts
	boolKind
	intKind
	uintKind
	floatKind
	timeKind // to the microsecond
)

// A column is a column of the flat formats.
type column struct {
	name     string
	kind     kind
	optional bool // there may be no value
	long     bool // a text may be longer than audit.MaxText
	// value returns a string, []string, bool, int64, uint64, float64 or time.Time,
	// by the kind, nil for none.
	value func(r *receiver.Record) any
}

// columns are those of the table of events: the members of a record, and when it
// was stored. Its own bytes are the last one.
func columns() []column {
	list := []column{{"arrived_at", timeKind, false, false, func(r *receiver.Record) any { return r.Arrived }}}
	for _, m := range audit.RecordMembers() {
		for _, c := range m.Columns() {
			list = append(list, newColumn(c))
		}
	}
	return append(list, column{"raw", bytesKind, false, true, func(r *receiver.Record) any { return r.Raw }})
}

// newColumn makes a column of one of ClickHouse's.
func newColumn(c audit.Column) column {
	typ := strings.TrimSuffix(strings.TrimPrefix(c.Type, "LowCardinality("), ")")
	inner, optional := strings.CutPrefix(c.Type, "Nullable(")
	if optional {
		typ = strings.TrimSuffix(inner, ")")
	}
	k := textKind
	switch {
	case strings.HasPrefix(typ, "Array"):
		k = listKind
	case typ == "Bool":
		k = boolKind
	case strings.HasPrefix(typ, "UInt"):
		k = uintKind
	case strings.HasPrefix(typ, "Int"):
		k = intKind
	case strings.HasPrefix(typ, "Float"):
		k = floatKind
	case strings.HasPrefix(typ, "DateTime"):
		k = timeKind
	}
	long := false
	switch c.Value.(type) {
	case func(*audit.Record) *audit.JSON, func(*audit.Record) string:
		long = true
	}
	return column{c.Name, k, optional, long, func(r *receiver.Record) any { return valueOf(c, k, &r.Record) }}
}

// valueOf returns the value of a column as a column's kind has it, see
// audit.Column.
func valueOf(c audit.Column, k kind, r *audit.Record) any {
	switch f := c.Value.(type) {
	case func(*audit.Record) *string:
		return *f(r)
	case func(*audit.Record) *audit.JSON:
		return string(*f(r))
	case func(*audit.Record) string:
		return f(r)
	case func(*audit.Record) *[]string:
		return *f(r)
	case func(*audit.Record) []string:
		return f(r)
	case func(*audit.Record) *bool:
		return *f(r)
	case func(*audit.Record) bool:
		return f(r)
	case func(*audit.Record) *int64:
		return number(k, uint64(*f(r)))
	case func(*audit.Record) int64:
		return number(k, uint64(f(r)))
	case func(*audit.Record) *uint64:
		return number(k, *f(r))
	case func(*audit.Record) *time.Time:
		return *f(r)
	case func(*audit.Record) (uint64, bool):
		if v, has := f(r); has {
			return number(k, v)
		}
		return nil
	}
	panic(fmt.Sprintf("column %q has a value of type %T", c.Name, c.Value))
}

// number returns the value that 64 bits are.
func number(k kind, bits uint64) any {
	switch k {
	case floatKind:
		return math.Float64frombits(bits)
	case timeKind:
		return time.UnixMicro(int64(bits)).UTC()
	case uintKind:
		return bits
	default:
		return int64(bits)
	}
}
