package clickhouse

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"auditproxy/collector/ingest"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// blockSize is the approximate memory of the rows of one block, see
// ingest.Row.Size: small enough to stay in a cache while it is written column
// by column, large enough that the names of the columns do not matter.
const blockSize = 1 << 20

// A blockReader reads rows as blocks of the Native format, which it encodes
// on demand: an insert of any size needs the memory of one block.
type blockReader struct {
	columns    []column
	rows       []ingest.Row     // not written yet
	compressor *compress.Writer // nil: none
	block      proto.Buffer
	unread     []byte
}

// newBlockReader returns a reader of rows that arrived at a time, in the frames
// of ClickHouse's LZ4 or plain.
func newBlockReader(rows []ingest.Row, at time.Time, compressed bool) *blockReader {
	r := &blockReader{columns: columnsAt(at), rows: rows, block: proto.Buffer{Buf: make([]byte, 0, blockSize)}}
	if compressed {
		r.compressor = compress.NewWriter(compress.LevelZero, compress.LZ4)
	}
	return r
}

// Read implements io.Reader.
func (r *blockReader) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		if len(r.rows) == 0 {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: HTTP's chunks are blocks then, and not the
// 32 KiB that io.Copy reads at a time.
func (r *blockReader) WriteTo(w io.Writer) (n int64, err error) {
	for {
		if len(r.unread) == 0 {
			if len(r.rows) == 0 {
				return n, nil
			}
			if err := r.next(); err != nil {
				return n, err
			}
		}
		written, err := w.Write(r.unread)
		r.unread = r.unread[written:]
		n += int64(written)
		if err != nil {
			return n, err
		}
	}
}

// next writes the next block.
func (r *blockReader) next() error {
	n := 0
	for size := int64(0); n < len(r.rows) && size < blockSize; n++ {
		size += r.rows[n].Size()
	}
	r.block.Reset()
	r.block.PutInt(len(r.columns))
	r.block.PutInt(n)
	for _, c := range r.columns {
		r.block.PutString(c.name)
		r.block.PutString(string(c.typ))
		c.put(&r.block, r.rows[:n])
	}
	r.rows, r.unread = r.rows[n:], r.block.Buf
	if r.compressor == nil {
		return nil
	}
	if err := r.compressor.Compress(r.block.Buf); err != nil {
		return fmt.Errorf("compressing a block: %w", err)
	}
	r.unread = r.compressor.Data
	return nil
}

// appendRows fills a batch of the statement that inserts events. The driver
// takes values as any and inspects them by reflection, which costs more than
// all other work on a record; but it reads columns fast.
func appendRows(b driver.Batch, rows []ingest.Row, at time.Time) error {
	var (
		buf    proto.Buffer
		source bytes.Reader
		in     = proto.NewReader(&source)
	)
	to := b.Columns()
	for i, c := range columnsAt(at) {
		buf.Reset()
		c.put(&buf, rows)
		source.Reset(buf.Buf)
		if err := read(to[i], c, in, len(rows)); err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return nil
}

// read reads c's values into the table's column. If that has another type,
// the driver converts them.
func read(to ch.Interface, c column, from *proto.Reader, rows int) error {
	if string(to.Type()) == string(c.typ) {
		return decode(to, from, rows)
	}
	ours, err := ch.Type(c.typ).Column(c.name, &ch.ServerContext{Timezone: time.UTC})
	if err == nil {
		err = decode(ours, from, rows)
	}
	for i := 0; i < rows && err == nil; i++ {
		err = to.AppendRow(ours.Row(i, false))
	}
	return err
}

func decode(to ch.Interface, from *proto.Reader, rows int) error {
	if s, ok := to.(ch.CustomSerialization); ok {
		if err := s.ReadStatePrefix(from); err != nil {
			return err
		}
	}
	return to.Decode(from, rows)
}
