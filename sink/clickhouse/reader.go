package clickhouse

import (
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// OpenReader returns connections on which statements can only read,
// regardless of the user's rights, and see each record once. It does not
// connect.
func OpenReader(c Config) (driver.Conn, error) {
	if len(c.Addrs) == 0 || !IsIdentifier(c.Database) {
		return nil, errors.New("configuring ClickHouse: want an address and a database")
	}
	o := c.options()
	o.Auth.Database = c.Database
	o.ReadTimeout = 0 // the driver's own: a query may take long
	o.Settings = clickhouse.Settings{"readonly": 1, "final": 1}
	c.Cluster.read(o.Settings)
	conn, err := clickhouse.Open(o)
	if err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	return conn, nil
}
