package clickhouse

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/clickhouse-go/v2"
)

// A Config configures a DB. It holds a password, so it must not be printed.
type Config struct {
	Addrs    []string // host:port; with Dial one name for messages. Required.
	HTTP     bool     // use HTTP, else the native protocol
	Database string   // letters, digits, underscores. Required.
	Cluster  Cluster
	User     string
	Password string
	TLS      func() *tls.Config // of a new connection; nil: plain text

	// CurrentPassword returns the password of a new connection, as of a file that is
	// replaced at times. nil: Password.
	CurrentPassword func() string

	// Dial connects to an address of Addrs; nil for TCP. A Unix socket needs it.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Uncompressed disables compression, which is faster on one machine.
	Uncompressed bool
	// KeepFree is how many bytes of its disk InsertRows and InsertKeepingFree leave the
	// server; 0: none.
	KeepFree uint64

	// Timeout is for one insert or one query; zero: 20 s. On a cluster the time
	// that the other replicas have for an insert is added. It must be shorter
	// than the time that a consumer group waits for a leaving member.
	Timeout time.Duration
}

// maxConns is the most connections of a DB: two inserts of records, a
// sweep that reads while it stores alerts, deliveries to a few receivers, a
// query, and one that may hang until its timeout. An insert must not wait for
// the others.
const maxConns = 10

func (c Config) options() *clickhouse.Options {
	o := &clickhouse.Options{
		Addr: c.Addrs,
		// Not c.Database: Migrate may have to create it.
		Auth:         clickhouse.Auth{Database: "default", Username: c.User, Password: c.Password},
		DialContext:  c.Dial,
		DialTimeout:  min(c.Timeout, 10*time.Second),
		ReadTimeout:  c.Timeout,
		MaxOpenConns: maxConns,
		MaxIdleConns: maxConns,
		Settings: clickhouse.Settings{
			// The server's default since 26.3, which answers before rows are parts.
			"async_insert":       0,
			"insert_deduplicate": 1,
			// The blocks of an insert become one, which its token identifies,
			// at any size; it never has more than 1 048 449 rows, the
			// server's default.
			"min_insert_block_size_bytes": 0,
			// A server that died between the table and the rollup feeds the rollup at
			// the next attempt, although the table has the rows.
			"deduplicate_blocks_in_dependent_materialized_views": 1,
			// To merge equal rows of one insert while it is written is half its
			// cost, and merges and FINAL do it anyway.
			"optimize_on_insert": 0,
			// Late records may belong to any month of the retention.
			"max_partitions_per_insert_block": 10000,
		},
		ClientInfo: clickhouse.ClientInfo{Products: []struct{ Name, Version string }{{Name: "auditcollector"}}},
	}
	c.Cluster.write(o.Settings)
	o.DialStrategy = c.dial
	if c.TLS != nil {
		o.TLS = c.TLS()
	}
	if c.HTTP {
		o.Protocol = clickhouse.HTTP
		o.TransportFunc = untilDeadline
	}
	if !c.Uncompressed {
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	return o
}

// dial connects with the password and the certificates of the time. With HTTP it is
// without the settings of the caller: the driver sends its own query over it, in plain
// text, and with an insert's "decompress" the server cannot read that.
func (c Config) dial(ctx context.Context, id int, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	if c.HTTP {
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{}))
	}
	current := *o
	if c.CurrentPassword != nil {
		current.Auth.Password = c.CurrentPassword()
	}
	if c.TLS != nil {
		current.TLS = c.TLS()
	}
	return clickhouse.DefaultDialStrategy(ctx, id, &current, dial)
}

// untilDeadline has a deadline of the context replace the timeout for reading, as
// in the native protocol. HTTP tells nothing about a statement before its first rows,
// or its end.
func untilDeadline(t *http.Transport) (http.RoundTripper, error) {
	patient := t.Clone()
	patient.ResponseHeaderTimeout = 0
	return &transport{t, patient}, nil
}

type transport struct {
	impatient *http.Transport // for requests without a deadline
	patient   *http.Transport
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	by := t.impatient
	if _, limited := r.Context().Deadline(); limited {
		by = t.patient
	}
	answer, err := by.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		hideLogin(r, answer)
	}
	return answer, err
}

// hideLogin takes the request's login out of an answer that becomes an error, which is
// logged: a proxy before the server may repeat the request in it. ClickHouse compresses
// some of its answers. The driver reads them uncompressed too, and a block that was
// changed it could not read.
func hideLogin(r *http.Request, answer *http.Response) {
	const most, shortest = 1 << 20, 6                        // shorter ones are words of the text too
	head, _ := io.ReadAll(io.LimitReader(answer.Body, most)) // the next read fails too
	if plain, err := io.ReadAll(io.LimitReader(compress.NewReader(bytes.NewReader(head)), most)); len(plain) > 0 && (err == nil || errors.Is(err, io.EOF)) {
		head = plain
	}
	_, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	_, password, _ := r.BasicAuth()
	for _, secret := range []string{sent, password, r.Header.Get("X-ClickHouse-Key")} {
		if len(secret) >= shortest {
			head = bytes.ReplaceAll(head, []byte(secret), []byte("<secret>"))
		}
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), answer.Body), answer.Body}
}

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() {
	t.impatient.CloseIdleConnections()
	t.patient.CloseIdleConnections()
}
