package retention

import (
	"context"

	"auditproxy/sink/clickhouse"
)

// Tables returns the names of tables whose rows become too old.
func Tables() (names []string) {
	for _, t := range tables() {
		names = append(names, t.name)
	}
	return names
}

// ErasedTables returns the names of tables that an erasure deletes from.
func ErasedTables(ctx context.Context, db *clickhouse.DB) (names []string, err error) {
	steps, err := (&eraser{db: db, e: Erasure{Kind: HoldUser}}).steps(ctx)
	for _, s := range steps {
		names = append(names, s.table)
	}
	return names, err
}
