//go:build linux || darwin

package chdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// revisionCustomSerialization is the first revision in which a column has a
// flag for another serialization than its type's own
// (DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION).
const revisionCustomSerialization = 54454

// translate converts the engine's blocks, of revision 0, to a client's
// revision, and passes them to send. A chunk holds whole blocks.
//
// Only the bytes around the values differ. The values are read to find their
// end, and sent unchanged: the driver cannot encode all that it can decode.
func translate(chunk []byte, revision uint64, send func([]byte) error) error {
	b := blockReader{data: chunk, send: send}
	for len(b.data) > b.at {
		columns, err := b.uvarint()
		if err == nil {
			err = b.block(columns, revision)
		}
		if err != nil {
			return err
		}
	}
	return send(b.out.Buf)
}

// A blockReader reads blocks of revision 0 and sends them in another
// revision.
type blockReader struct {
	data []byte
	at   int          // bytes of data that were read
	out  proto.Buffer // bytes to send next
	send func([]byte) error

	// For columns that must be decoded; nil before the first one.
	source   *bytes.Reader
	buffered *bufio.Reader // of source
	in       *proto.Reader // of buffered
}

func (b *blockReader) uvarint() (uint64, error) {
	v, n := binary.Uvarint(b.data[b.at:])
	if n <= 0 {
		return 0, notNative(io.ErrUnexpectedEOF)
	}
	b.at += n
	return v, nil
}

// take reads n bytes.
func (b *blockReader) take(n uint64) ([]byte, error) {
	if n > uint64(len(b.data)-b.at) {
		return nil, notNative(io.ErrUnexpectedEOF)
	}
	from := b.at
	b.at += int(n)
	return b.data[from:b.at], nil
}

// text reads a text, whose bytes are part of data.
func (b *blockReader) text() ([]byte, error) {
	n, err := b.uvarint()
	if err != nil {
		return nil, err
	}
	return b.take(n)
}

// gathered is the least number of bytes sent together, except at the end.
const gathered = 64 << 10

// pass sends values unchanged.
func (b *blockReader) pass(values []byte) error {
	if len(b.out.Buf)+len(values) < gathered {
		b.out.PutRaw(values)
		return nil
	}
	err := b.send(b.out.Buf)
	b.out.Reset()
	if err != nil {
		return err
	}
	return b.send(values)
}

// block translates a block after its number of columns.
func (b *blockReader) block(columns, revision uint64) error {
	rows, err := b.uvarint()
	if err != nil {
		return err
	}
	if rows > math.MaxInt32 {
		return notNative(fmt.Errorf("a block of %d rows", rows))
	}
	if rows > 0 { // a client reads the prefix of values only if there are any
		putBlockInfo(&b.out)
		b.out.PutUVarInt(columns)
		b.out.PutUVarInt(rows)
	}
	for range columns {
		name, err := b.text()
		if err != nil {
			return err
		}
		typ, err := b.text()
		if err != nil {
			return err
		}
		if rows == 0 {
			continue
		}
		start := b.at
		if err := b.skip(string(name), string(typ), rows); err != nil {
			return err
		}
		b.out.PutUVarInt(uint64(len(name)))
		b.out.PutRaw(name)
		b.out.PutUVarInt(uint64(len(typ)))
		b.out.PutRaw(typ)
		if revision >= revisionCustomSerialization {
			b.out.PutBool(false)
		}
		if err := b.pass(b.data[start:b.at]); err != nil {
			return err
		}
	}
	return nil
}

// skip reads the values of a column. Most bytes of an answer are in columns whose
// ends can be found without decoding them.
func (b *blockReader) skip(name, typ string, rows uint64) error {
	switch size := fixed(typ); {
	case size > 0:
		_, err := b.take(rows * size)
		return err
	case typ == "String":
		for range rows {
			if _, err := b.text(); err != nil {
				return err
			}
		}
		return nil
	}
	c, err := column.Type(typ).Column(name, &column.ServerContext{Timezone: time.UTC})
	if err != nil {
		return notNative(err)
	}
	b.decodeFromHere()
	if s, ok := c.(column.CustomSerialization); ok {
		if err := s.ReadStatePrefix(b.in); err != nil {
			return notNative(err)
		}
	}
	if err := c.Decode(b.in, int(rows)); err != nil {
		return notNative(err)
	}
	b.at = len(b.data) - b.source.Len() - b.buffered.Buffered()
	return nil
}

func (b *blockReader) decodeFromHere() {
	if b.in == nil {
		b.source = bytes.NewReader(nil)
		b.buffered = bufio.NewReaderSize(b.source, 1<<17) // as large as the driver's own, so that it uses this one
		b.in = proto.NewReader(b.buffered)
	}
	b.source.Reset(b.data[b.at:])
	b.buffered.Reset(b.source)
}

// fixed returns the bytes of a value of a type, 0 for a type of which this is not
// known here.
func fixed(typ string) uint64 {
	switch typ {
	case "UInt8", "Int8", "Bool":
		return 1
	case "UInt16", "Int16", "Date":
		return 2
	case "UInt32", "Int32", "Float32", "DateTime":
		return 4
	case "UInt64", "Int64", "Float64":
		return 8
	case "UUID":
		return 16
	}
	if strings.HasPrefix(typ, "DateTime64(") {
		return 8
	}
	size, ok := strings.CutPrefix(typ, "FixedString(")
	if !ok {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSuffix(size, ")"), 10, 32) // the largest for a larger one, 0 for no number
	return n
}

// putBlockInfo writes a block info without overflow rows and buckets.
func putBlockInfo(b *proto.Buffer) {
	b.PutUVarInt(1)
	b.PutBool(false)
	b.PutUVarInt(2)
	b.PutInt32(-1)
	b.PutUVarInt(0)
}

func notNative(err error) error {
	return exceptionf(codeUnknown, "this answer cannot be sent in the native format, but in others: %v", err)
}
