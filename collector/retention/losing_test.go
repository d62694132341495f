package retention_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"sync"
	"sync/atomic"

	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
)

// removes matches a request that removes rows, records it, or fills a table again.
var removes = regexp.MustCompile(`^POST (?s:.*)(INSERT INTO audit.retention_log|INSERT INTO audit.leaves|INSERT INTO audit.eras|INSERT INTO audit.\w+_states|DELETE FROM|ALTER TABLE)`)

// A losing network loses its connection at one request that removes: before the server has it,
// or before the client has the answer. All later requests fail, as those of a
// program that is dead.
type losing struct {
	dial  func(context.Context, string) (net.Conn, error)
	sends bool // the request arrives, and its answer is lost

	mu   sync.Mutex
	left int // requests that still pass; guarded by mu
}

var errLost = errors.New("lost")

func (l *losing) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, addr)
	return &losingConn{Conn: c, l: l}, err
}

type losingConn struct {
	net.Conn
	l    *losing
	dead atomic.Bool
}

func (c *losingConn) Write(b []byte) (int, error) {
	if !removes.Match(b) {
		return c.Conn.Write(b)
	}
	c.l.mu.Lock()
	c.l.left--
	left := c.l.left
	c.l.mu.Unlock()
	if left >= 0 {
		return c.Conn.Write(b)
	}
	if left < -1 || !c.l.sends {
		return 0, errLost
	}
	c.dead.Store(true)
	return c.Conn.Write(b)
}

// Read loses the answer once the server has given it.
func (c *losingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.dead.Load() && err == nil {
		return 0, errLost
	}
	return n, err
}

// An intercepted network calls do before the server has the first request that
// matches at, as if the process had been stopped there.
type intercepted struct {
	dial func(context.Context, string) (net.Conn, error)
	at   *regexp.Regexp
	do   func()
	once sync.Once
}

var deletes = regexp.MustCompile(`^POST (?s:.*)(DELETE FROM|ALTER TABLE) audit.events`)

// intercept returns a database behind an intercepted network.
func (f *fixture) intercept(at *regexp.Regexp, do func()) *clickhouse.DB {
	f.t.Helper()
	i := &intercepted{dial: chdb.Dialer(f.dir, chdb.Writer), at: at, do: do}
	db, err := clickhouse.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: i.connect, Uncompressed: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { db.Close() })
	return db
}

func (i *intercepted) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := i.dial(ctx, addr)
	return &interceptedConn{c, i}, err
}

type interceptedConn struct {
	net.Conn
	i *intercepted
}

func (c *interceptedConn) Write(b []byte) (int, error) {
	if c.i.at.Match(b) {
		c.i.once.Do(c.i.do)
	}
	return c.Conn.Write(b)
}
