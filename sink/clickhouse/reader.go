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
	return open(c, func(o *clickhouse.Options) {
		o.Settings = clickhouse.Settings{"readonly": 1, "final": 1}
	})
}

// OpenWriter returns connections on which statements may do what the user may.
// It does not connect.
func OpenWriter(c Config) (driver.Conn, error) {
	return open(c, func(*clickhouse.Options) {})
}

func open(c Config, change func(*clickhouse.Options)) (driver.Conn, error) {
	if len(c.Addrs) == 0 || !identifier(c.Database) {
		return nil, errors.New("configuring ClickHouse: want an address and a database")
	}
	o := c.options()
	o.Auth.Database = c.Database
	o.ReadTimeout = 0 // the driver's own: a query may take long
	change(o)
	conn, err := clickhouse.Open(o)
	if err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	return conn, nil
}
