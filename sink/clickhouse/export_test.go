package clickhouse

import "github.com/ClickHouse/clickhouse-go/v2"

// Renewed is renewed.
func Renewed(statement string) []string { return renewed(statement) }

// OpenBare is Open for servers that know none of the settings that a
// database sends, or let nobody set any.
func OpenBare(c Config) (*DB, error) {
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	o := s.c.options()
	o.Settings = nil
	s.conn, err = clickhouse.Open(o)
	return s, err
}
