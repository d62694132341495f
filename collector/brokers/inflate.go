package brokers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/segmentio/kafka-go/compress"
)

// A batch of a few KB can become gigabytes when it is decompressed: every producer
// could end all collectors, at the same batch again after each start. So it becomes at
// most maxInflation times its size, or minInflated, and at most maxInflated bytes; and
// 256 KiB of batches at most 64 MiB, but for the smallest. LZ4, which
// auditproxy uses, never reaches maxInflation, and it sends batches of 1 MiB.
const (
	maxInflation = 256
	minInflated  = 64 << 10
	maxInflated  = 16 << 20
)

// BoundBatches bounds what a batch from Kafka becomes in memory, in this process. A
// program calls it before it connects: kafka-go has one table of codecs, which must not
// change while a connection reads it.
func BoundBatches() {
	for i, codec := range compress.Codecs {
		if _, bounded := codec.(boundedCodec); codec != nil && !bounded {
			compress.Codecs[i] = boundedCodec{codec}
		}
	}
}

// A boundedCodec puts one record in place of those of a batch that becomes too large:
// a dead letter with the reason. The offsets of the others are a gap.
type boundedCodec struct{ compress.Codec }

func (c boundedCodec) NewReader(r io.Reader) io.ReadCloser {
	return &boundedReader{codec: c.Codec, from: r}
}

// A boundedReader decompresses all at the first Read: what was read cannot be replaced.
type boundedReader struct {
	codec compress.Codec
	from  io.Reader
	buf   *bytes.Buffer // from buffers; nil before the first Read
}

// buffers are for batches, so that these are not allocated one by one.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.buf == nil {
		b.buf = buffers.Get().(*bytes.Buffer)
		if err := b.inflate(); err != nil {
			return 0, err
		}
	}
	return b.buf.Read(p)
}

func (b *boundedReader) inflate() error {
	batch := buffers.Get().(*bytes.Buffer)
	defer release(batch)
	if _, err := batch.ReadFrom(b.from); err != nil { // all of it: it has a checksum
		return err
	}
	size := int64(batch.Len())
	most := min(max(maxInflation*size, minInflated), maxInflated)
	r := b.codec.NewReader(struct{ io.Reader }{batch}) // zstd decompresses all of a buffer at once
	defer r.Close()
	switch n, err := io.CopyN(b.buf, r, most+1); {
	case n > most:
		b.buf.Reset()
		b.buf.Write(insteadOfBatch(size, most))
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (b *boundedReader) Close() error {
	if b.buf != nil {
		release(b.buf)
	}
	b.buf = nil
	return nil
}

func release(b *bytes.Buffer) {
	b.Reset()
	if b.Cap() <= 2*maxInflated {
		buffers.Put(b)
	}
}

// insteadOfBatch returns a record at the batch's first offset, as it is in a batch: with
// the reason as its value, and no key.
func insteadOfBatch(size, most int64) []byte {
	const none = -1
	value := fmt.Sprintf("auditcollector: in place of a batch of %d bytes that becomes more than %d bytes when it is decompressed", size, most)
	record := []byte{0}                                            // attributes
	for _, field := range []int64{0, 0, none, int64(len(value))} { // times and offsets after the batch's, lengths of key and value
		record = binary.AppendVarint(record, field)
	}
	record = append(record, value...)
	record = binary.AppendVarint(record, 0) // headers
	return append(binary.AppendVarint(nil, int64(len(record))), record...)
}
