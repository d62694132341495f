package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
)

// keepsFirst matches the engine of a table whose rows have a version by which
// the first of equal ones stays; engineOf finds the engine in a CREATE TABLE.
var (
	keepsFirst = regexp.MustCompile(`^(Replicated)?ReplacingMergeTree\((.*, )?precedence\) `)
	engineOf   = regexp.MustCompile(`ENGINE = ((?:Replicated)?ReplacingMergeTree)(\([^)]*\))? `)
)

// before holds the records that were stored before events had a version, until
// they are in events.
const before = "events_before"

// maxSwaps bounds the exchanges of programs that migrate at the same time.
const maxSwaps = 10

// keepFirst makes events a table in which the first arrival of a record stays.
// An engine cannot be altered, so a table with the new one takes the name, and
// the old one's parts move to it: hard links, whatever their size. Views follow
// the name. A crash, or another program that does the same, leaves the records
// in one of the two tables, and the next attempt goes on from there. fresh: no
// other program can have used the tables.
//
// On a cluster the tables have that engine from the start. Others are refused:
// two tables that are exchanged keep their places in Keeper, which a replica that
// joins later finds by the names.
func (db *DB) keepFirst(ctx context.Context, fresh bool) error {
	if db.c.Cluster.Name != "" {
		name := db.c.Cluster.Part("events")
		events, err := db.table(ctx, name)
		if err == nil && !keepsFirst.MatchString(events.engine) {
			err = &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("table %q has the engine %q, which keeps the last arrival of a record: "+
				"set clickhouse.database to a new one, migrate, and copy the records to it", name, events.engine)}
		}
		return err
	}
	swapped := false
	for range maxSwaps {
		events, err := db.table(ctx, "events")
		if err != nil {
			return err
		}
		if keepsFirst.MatchString(events.engine) {
			return db.moveBefore(ctx, fresh || !swapped)
		}
		next := engineOf.ReplaceAllStringFunc(events.create, func(engine string) string {
			m := engineOf.FindStringSubmatch(engine)
			arguments := strings.TrimSuffix(strings.TrimPrefix(m[2], "("), ")")
			if arguments != "" {
				arguments += ", "
			}
			return "ENGINE = " + m[1] + "(" + arguments + "precedence) "
		})
		next = strings.Replace(next, "CREATE TABLE "+db.c.Database+".events ", "CREATE TABLE IF NOT EXISTS "+db.c.Database+"."+before+" ${on_cluster} ", 1)
		exchange := "EXCHANGE TABLES ${database}.events AND ${database}." + before + " ${on_cluster}"
		if err := db.exec(ctx, schemas.Statements(next+";\n"+exchange+";\n", db.names())...); err != nil {
			return err
		}
		swapped = true
	}
	return errors.New("another program exchanges the tables too")
}

// moveBefore moves what was stored before into events. The old table is dropped
// by the run after the one that moved it: an insert may still have been under
// way.
func (db *DB) moveBefore(ctx context.Context, drop bool) error {
	old, err := db.table(ctx, before)
	if err != nil || old.engine == "" {
		return err
	}
	var partitions []struct {
		ID string `ch:"partition_id"`
	}
	if err := db.conn.Select(ctx, &partitions, "SELECT DISTINCT partition_id FROM system.parts WHERE database = ? AND table = ? AND active ORDER BY partition_id", db.c.Database, before); err != nil {
		return err
	}
	for _, p := range partitions {
		sql := fmt.Sprintf("ALTER TABLE ${database}.%s ${on_cluster} MOVE PARTITION ID '%s' TO TABLE ${database}.events;", before, p.ID)
		if err := db.exec(ctx, schemas.Statements(sql, db.names())...); err != nil {
			return err
		}
	}
	if !drop {
		return nil
	}
	err = db.exec(ctx, schemas.Statements("DROP TABLE IF EMPTY ${database}."+before+" ${on_cluster};", db.names())...)
	if slices.Contains(noUsersCodes, codeOf(err)) || slices.Contains(notThereCodes, codeOf(err)) {
		return nil // who may only write leaves it, and another may have been faster
	}
	return err
}

func (db *DB) table(ctx context.Context, name string) (t table, err error) {
	rows, err := db.conn.Query(ctx, "SELECT engine_full, create_table_query FROM system.tables WHERE database = ? AND name = ?", db.c.Database, name)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&t.engine, &t.create); err != nil {
			return t, err
		}
	}
	return t, rows.Err()
}
