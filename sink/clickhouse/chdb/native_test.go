//go:build linux || darwin

package chdb

import (
	"bytes"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
)

// block returns a block of revision 0, or of one with a flag for each column.
func block(t *testing.T, flags bool) []byte {
	t.Helper()
	var b proto.Buffer
	if flags {
		putBlockInfo(&b)
	}
	columns := []struct {
		typ    string
		values proto.ColInput
	}{
		{"String", &proto.ColStr{Buf: []byte("axyz"), Pos: []proto.Position{{End: 1}, {Start: 1, End: 1}, {Start: 1, End: 4}}}},
		{"UInt8", &proto.ColUInt8{1, 2, 3}},
		{"UInt16", &proto.ColUInt16{1, 2, 3}},
		{"UInt32", &proto.ColUInt32{1, 2, 3}},
		{"UInt64", &proto.ColUInt64{1, 2, 3}},
		{"UUID", &proto.ColUUID{{1}, {2}, {3}}},
		{"FixedString(2)", &proto.ColFixedStr{Size: 2, Buf: []byte("aabbcc")}},
		{"DateTime64(6, 'UTC')", &proto.ColInt64{1, 2, 3}},
		{"Array(String)", proto.NewArray(&proto.ColStr{})},
		{"Nullable(Int64)", proto.NewColNullable(new(proto.ColInt64))},
		{"String", &proto.ColStr{Buf: []byte("axyz"), Pos: []proto.Position{{End: 1}, {Start: 1, End: 1}, {Start: 1, End: 4}}}},
	}
	b.PutUVarInt(uint64(len(columns)))
	b.PutUVarInt(3)
	for _, c := range columns {
		switch values := c.values.(type) {
		case *proto.ColArr[string]:
			values.Append([]string{"a", "bb"})
			values.Append(nil)
			values.Append([]string{""})
		case *proto.ColNullable[int64]:
			values.Append(proto.NewNullable[int64](5))
			values.Append(proto.Null[int64]())
			values.Append(proto.NewNullable[int64](6))
		}
		b.PutString("name of " + c.typ)
		b.PutString(c.typ)
		if flags {
			b.PutBool(false)
		}
		c.values.EncodeColumn(&b)
	}
	return b.Buf
}

// TestTranslate translates blocks with columns of types whose ends are found with and
// without decoding them. A chunk that is cut is an error.
func TestTranslate(t *testing.T) {
	chunk := append(block(t, false), block(t, false)...)
	want := append(block(t, true), block(t, true)...)
	var got []byte
	keep := func(b []byte) error { got = append(got, b...); return nil }
	if err := translate(chunk, revisionCustomSerialization, keep); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("translated (-want +got):\n%s", diff)
	}
	for n := range len(chunk) {
		if n == 0 || n == len(chunk)/2 {
			continue // whole blocks
		}
		if translate(bytes.Clone(chunk[:n]), revisionCustomSerialization, keep) == nil {
			t.Errorf("%d bytes of %d are translated", n, len(chunk))
		}
	}
	for _, wrong := range []string{"FixedString(99999999999)", "DateTime64(", "Sting"} {
		if translate(bytes.Replace(chunk, []byte("\x0eFixedString(2)"), append([]byte{byte(len(wrong))}, wrong...), 1), revisionCustomSerialization, keep) == nil {
			t.Errorf("type %q is translated", wrong)
		}
	}
}
