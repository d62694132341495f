package retention

import (
	"context"
	"time"

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

// Within and Over say whether a cutoff is within the time of a table's partition, and
// whether nothing in it can be kept.
func Within(partition string, cutoff time.Time) bool {
	return table{}.within(partition, cutoffs{events: cutoff})
}
func Over(partition string, cutoff time.Time) bool {
	return table{}.over(partition, cutoffs{events: cutoff})
}

// Tend makes the table of open alerts what it should be.
func (j *Job) Tend(ctx context.Context) error { return j.c.tend(ctx) }
