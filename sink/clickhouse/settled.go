package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"auditproxy/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// settleTimeout is how long one server may take to get what it lacks.
const settleTimeout = 10 * time.Second

// A Settled connects for queries that must not miss a record: what was
// acknowledged before one, by any server of a cluster, is in its result. Its
// methods may be called concurrently.
type Settled struct {
	c    Config
	any  driver.Conn // for one server
	open func(Config) (driver.Conn, error)

	mu      sync.Mutex
	servers map[string]*settledServer // by address; guarded by mu
}

// A settledServer is connections to one server: a replica that is behind cannot
// be told from another through connections to several.
type settledServer struct{ wait, ask driver.Conn }

// NewSettled returns connections that open makes for queries; any are those to
// the servers of c, with the same rights. The user of c needs SYSTEM SYNC REPLICA.
func NewSettled(c Config, any driver.Conn, open func(Config) (driver.Conn, error)) *Settled {
	return &Settled{c: c, any: any, open: open, servers: map[string]*settledServer{}}
}

// Close closes the connections that it opened.
func (s *Settled) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		server.wait.Close()
		server.ask.Close()
	}
	clear(s.servers)
}

// Conn returns connections for a query that follows, and the context for it. On
// a cluster it waits for a replica that is not behind, or the query itself asks
// for what a quorum has.
func (s *Settled) Conn(ctx context.Context) (context.Context, driver.Conn, error) {
	switch c := s.c.Cluster; {
	case c.Name == "":
		return ctx, s.any, nil
	case c.Sequential:
		return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"select_sequential_consistency": 1})), s.any, nil
	}
	tables, err := replicatedTables(s.c)
	if err != nil {
		return nil, nil, err
	}
	var problems []error
	for _, addr := range s.c.Addrs {
		conn, err := s.settle(ctx, addr, tables)
		if err == nil {
			return s.distant(ctx), conn, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		// As text: an error of HTTP would be shown without what is around it.
		problems = append(problems, fmt.Errorf("%s: %v", addr, Explain(err)))
	}
	return nil, nil, fmt.Errorf("waiting for a replica that is not behind: %w", errors.Join(problems...))
}

// distant has a query use no replica of another shard that is behind. Such a
// server is not waited for: the query fails, and is repeated.
func (s *Settled) distant(ctx context.Context) context.Context {
	if !s.c.Cluster.Distributed {
		return ctx
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_replica_delay_for_distributed_queries": 1, "fallback_to_stale_replicas_for_distributed_queries": 0,
	}))
}

// settle has a server get what other replicas have.
func (s *Settled) settle(ctx context.Context, addr string, tables []string) (driver.Conn, error) {
	server, err := s.server(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, t := range tables {
		err := server.wait.Exec(ctx, "SYSTEM SYNC REPLICA "+s.c.Database+"."+t+" LIGHTWEIGHT")
		if err != nil && !slices.Contains(notThereCodes, codeOf(err)) { // a later migration removes some
			return nil, err
		}
	}
	return server.ask, nil
}

func (s *Settled) server(addr string) (*settledServer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if server := s.servers[addr]; server != nil {
		return server, nil
	}
	c := s.c
	c.Addrs = []string{addr}
	wait, err := clickhouse.Open(c.options())
	if err != nil {
		return nil, err
	}
	ask, err := s.open(c)
	if err != nil {
		wait.Close()
		return nil, err
	}
	s.servers[addr] = &settledServer{wait, ask}
	return s.servers[addr], nil
}

// replicates finds the tables with rows of their own.
var replicates = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS \w+\.(\w+) .*\bENGINE = Replicated`)

// replicatedTables returns the tables that replicas of a server get from others.
func replicatedTables(c Config) (tables []string, err error) {
	list, err := schemas.ClickHouse()
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if !strings.Contains(m.SQL, "${replicated}") {
			continue
		}
		for _, statement := range schemas.Statements(m.SQL, schemas.Names{Database: c.Database, Cluster: c.Cluster.Cluster}) {
			if m := replicates.FindStringSubmatch(statement); m != nil {
				tables = append(tables, m[1])
			}
		}
	}
	return tables, nil
}
