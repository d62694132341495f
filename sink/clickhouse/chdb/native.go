//go:build linux || darwin

package chdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
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
// Only the bytes around the values differ. The values are decoded to find
// their end, and sent unchanged: the driver cannot encode all that it can
// decode.
func translate(chunk []byte, revision uint64, send func([]byte) error) error {
	b := blockReader{data: chunk, source: bytes.NewReader(chunk), send: send}
	b.buffered = bufio.NewReaderSize(b.source, 1<<17) // as large as the driver's own, so that it uses this one
	b.in = proto.NewReader(b.buffered)
	for {
		columns, err := b.in.UVarInt()
		if errors.Is(err, io.EOF) {
			return send(b.out.Buf)
		}
		if err == nil {
			err = b.block(columns, revision)
		}
		if err != nil {
			return err
		}
	}
}

// A blockReader reads blocks of revision 0 and sends them in another
// revision.
type blockReader struct {
	data     []byte
	source   *bytes.Reader // of data
	buffered *bufio.Reader // of source
	in       *proto.Reader // of buffered
	out      proto.Buffer  // bytes to send next
	send     func([]byte) error
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

// offset returns the number of bytes of data that were read.
func (b *blockReader) offset() int { return len(b.data) - b.source.Len() - b.buffered.Buffered() }

// block translates a block after its number of columns.
func (b *blockReader) block(columns, revision uint64) error {
	rows, err := b.in.UVarInt()
	if err != nil || rows > math.MaxInt32 {
		return notNative(fmt.Errorf("a block of %d rows: %w", rows, err))
	}
	if rows > 0 { // a client reads the prefix of values only if there are any
		putBlockInfo(&b.out)
		b.out.PutUVarInt(columns)
		b.out.PutUVarInt(rows)
	}
	for range columns {
		name, err1 := b.in.Str()
		typ, err2 := b.in.Str()
		if err := errors.Join(err1, err2); err != nil {
			return notNative(err)
		}
		if rows == 0 {
			continue
		}
		start := b.offset()
		if err := b.skip(name, column.Type(typ), int(rows)); err != nil {
			return notNative(err)
		}
		b.out.PutString(name)
		b.out.PutString(typ)
		if revision >= revisionCustomSerialization {
			b.out.PutBool(false)
		}
		if err := b.pass(b.data[start:b.offset()]); err != nil {
			return err
		}
	}
	return nil
}

// skip reads the values of a column.
func (b *blockReader) skip(name string, typ column.Type, rows int) error {
	c, err := typ.Column(name, &column.ServerContext{Timezone: time.UTC})
	if err != nil {
		return err
	}
	if s, ok := c.(column.CustomSerialization); ok {
		if err := s.ReadStatePrefix(b.in); err != nil {
			return err
		}
	}
	return c.Decode(b.in, rows)
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
