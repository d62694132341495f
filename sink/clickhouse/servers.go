package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/schemas"
)

// A table is how the server describes one; empty if there is none.
type table struct{ engine, create string }

// A server is one of a cluster, with its tables of the database.
type server map[string]table

// servers returns the servers of the cluster by their names. They must all run.
func (db *DB) servers(ctx context.Context) (map[string]server, error) {
	const name = "concat(hostName(), ':', toString(tcpPort()))"
	var names []struct {
		Host string `ch:"host"`
	}
	if err := db.conn.Select(ctx, &names, "SELECT "+name+" AS host FROM clusterAllReplicas('"+db.c.Cluster.Name+"', system.one)"); err != nil {
		return nil, err
	}
	servers := map[string]server{}
	for _, n := range names {
		servers[n.Host] = server{}
	}
	var tables []struct {
		Host   string `ch:"host"`
		Name   string `ch:"name"`
		Engine string `ch:"engine_full"`
		Create string `ch:"create_table_query"`
	}
	err := db.conn.Select(ctx, &tables, "SELECT "+name+" AS host, name, engine_full, create_table_query FROM clusterAllReplicas('"+
		db.c.Cluster.Name+"', system.tables) WHERE database = ?", db.c.Database)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if servers[t.Host] == nil {
			servers[t.Host] = server{}
		}
		servers[t.Host][t.Name] = table{t.Engine, t.Create}
	}
	return servers, nil
}

// join makes tables on servers that joined the cluster after they were made. Such
// a server cannot repeat the migrations: what each of them made, a later one may
// have altered, and a replica must be made like the living ones.
func (db *DB) join(ctx context.Context) error {
	servers, err := db.servers(ctx)
	if slices.Contains(noUsersCodes, codeOf(err)) {
		return nil // who may only write sees the tables of its own server
	}
	if err != nil {
		return err
	}
	if err := db.checkShards(ctx); err != nil {
		return err
	}
	own, err := db.ownTables()
	if err != nil {
		return err
	}
	missing, err := missingTables(servers, own)
	if err != nil {
		return &ingest.Error{Class: ingest.Configuration, Err: err}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := db.exec(ctx, schemas.Statements("CREATE DATABASE IF NOT EXISTS ${database} ${on_cluster};", db.names())...); err != nil {
		return err
	}
	return makeTables(missing, func(create string) error { return db.exec(ctx, onCluster(create, db.c.Cluster.Name)) })
}

// checkShards returns an error if the cluster has shards that would not be read
// together: each would have the records that were sent to its servers.
func (db *DB) checkShards(ctx context.Context) error {
	c := db.c.Cluster
	if c.Distributed || !strings.Contains(c.ReplicaPath, "{shard}") {
		return nil
	}
	var shards uint64
	if err := db.conn.QueryRow(ctx, "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = ?", c.Name).Scan(&shards); err != nil || shards <= 1 {
		return err
	}
	return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("cluster %q has %d shards, and a reader of one would not see the records of the others: "+
		"set clickhouse.distributed, name a cluster of one shard, or leave {shard} out of clickhouse.replica_path", c.Name, shards)}
}

// makeTables makes tables in an order in which each has what it needs.
func makeTables(missing map[string]string, make func(create string) error) error {
	after := func(create string) int {
		switch {
		case strings.HasPrefix(create, "CREATE VIEW"):
			return 3
		case strings.HasPrefix(create, "CREATE MATERIALIZED VIEW"):
			return 2
		case strings.Contains(create, "ENGINE = Distributed"):
			return 1
		}
		return 0
	}
	names := slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(cmp.Compare(after(missing[a]), after(missing[b])), cmp.Compare(a, b))
	})
	for len(names) > 0 {
		var left []string // views that need another view
		for _, name := range names {
			err := make(missing[name])
			if slices.Contains(notThereCodes, codeOf(err)) && len(left) < len(names)-1 {
				left = append(left, name)
				continue
			}
			if err != nil {
				return fmt.Errorf("making %q on the servers that lack it: %w", name, err)
			}
		}
		names = left
	}
	return nil
}

const migrationsTable = `
CREATE DATABASE IF NOT EXISTS ${database} ${on_cluster};
CREATE TABLE IF NOT EXISTS ${database}.migrations ${on_cluster}
(
    number     UInt32,
    name       String,
    sha256     String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (number, sha256)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE ${database}.migrations ${on_cluster} ADD COLUMN IF NOT EXISTS needs UInt32 DEFAULT number;
`

// creation finds what a migration creates.
var creation = regexp.MustCompile(`^CREATE (?:OR REPLACE )?(?:TABLE|MATERIALIZED VIEW|VIEW) (?:IF NOT EXISTS )?\w+\.(\w+) `)

// removal finds what a migration drops.
var removal = regexp.MustCompile(`^DROP (?:TABLE|VIEW) IF EXISTS \w+\.(\w+) `)

// ownTables returns the names of the tables and views of this program, with false those
// that a later migration drops: an administrator may have others beside them.
func (db *DB) ownTables() (map[string]bool, error) {
	statements, err := db.statements()
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, s := range append(schemas.Statements(migrationsTable, db.names()), statements...) {
		if m := creation.FindStringSubmatch(s); m != nil {
			own[m[1]] = true
		}
		if m := removal.FindStringSubmatch(s + " "); m != nil {
			own[m[1]] = false
		}
	}
	return own, nil
}

// A migration of another program drops a view and makes it again.
const (
	dropLooks = 5
	dropPause = 200 * time.Millisecond
)

// ErrDropped is in an error about tables or columns that were dropped.
var ErrDropped = errors.New("are not there")

// Dropped returns an error with ErrDropped that names the tables and views of this program that
// somebody dropped, or the columns: no migration makes them again, since what they had is lost.
// It knows nothing of those that this user has no right to.
func (db *DB) Dropped(ctx context.Context) error {
	const doing = "looking for tables that were dropped"
	own, err := db.ownTables()
	if err != nil {
		return err
	}
	var dropped, columns, remedies []string
	for look := range dropLooks {
		if look > 0 && wait.For(ctx, dropPause) != nil {
			return ctx.Err()
		}
		if dropped, err = db.absent(ctx, maps.Clone(own)); err == nil {
			columns, remedies, err = db.altered(ctx)
		}
		if err != nil || len(dropped)+len(columns) == 0 {
			return Classify(doing, err)
		}
	}
	if len(dropped) == 0 {
		return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("%s: columns %s of database %q %w, or have another type; what arrives is not stored as it is: run %s", doing,
			strings.Join(columns, ", "), db.c.Database, ErrDropped, strings.Join(remedies, "; "))}
	}
	return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("%s: %s of database %q %w: run UNDROP TABLE within minutes, restore them from a backup, "+
		"or make them again without what they had, as docs/operations.md says", doing, strings.Join(dropped, ", "), db.c.Database, ErrDropped)}
}

// ErrRewritten is in an error about views with another query, and columns and tables with
// another default or TTL.
var ErrRewritten = errors.New("were changed")

// Changed returns the error of Dropped, or one with ErrRewritten that names the views of this
// program whose query somebody changed, and since when, and what redefined returns. Records
// are stored all the same, so a start does not wait for it.
func (db *DB) Changed(ctx context.Context) error {
	if err := db.Dropped(ctx); err != nil {
		return err
	}
	const doing = "looking for views, defaults and TTLs that were changed"
	changed, remedies, err := db.rewritten(ctx)
	if err != nil {
		return Classify(doing, err)
	}
	defined, more, err := db.redefined(ctx)
	if changed, remedies = append(changed, defined...), append(remedies, more...); err != nil || len(changed) == 0 {
		return Classify(doing, err)
	}
	return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("%s: %s of database %q %w; what they show, fill or remove from then on is not what the records say: run %s", doing,
		strings.Join(changed, ", "), db.c.Database, ErrRewritten, strings.Join(remedies, "; "))}
}

// absent returns those of own tables that are not there.
func (db *DB) absent(ctx context.Context, own map[string]bool) (list []string, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	var there []struct {
		Name string `ch:"name"`
	}
	if err := db.conn.Select(ctx, &there, "SELECT name FROM system.tables WHERE database = ?", db.c.Database); err != nil {
		return nil, err
	}
	for _, t := range there {
		delete(own, t.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !own[name] {
			continue
		}
		var exists uint8 // system.tables has not what this user has no right to
		switch err := db.conn.QueryRow(ctx, "EXISTS TABLE "+db.c.Database+"."+name).Scan(&exists); {
		case slices.Contains(noUsersCodes, codeOf(err)):
		case err != nil:
			return nil, err
		case exists == 0:
			list = append(list, fmt.Sprintf("%q", name))
		}
	}
	return list, nil
}

// missingTables returns those of own tables that some servers lack, with the statements
// that made them elsewhere. It returns an error if rows of a table are on one
// server only.
func missingTables(servers map[string]server, own map[string]bool) (map[string]string, error) {
	missing := map[string]string{}
	for _, host := range slices.Sorted(maps.Keys(servers)) {
		for _, name := range slices.Sorted(maps.Keys(servers[host])) {
			t := servers[host][name]
			if !own[name] {
				continue
			}
			if strings.Contains(t.engine, "MergeTree") && !strings.HasPrefix(t.engine, "Replicated") && !strings.HasPrefix(t.engine, "Shared") {
				return nil, fmt.Errorf("table %q of server %q is not replicated: set clickhouse.database to a new one, migrate, and copy the records to it", name, host)
			}
			for _, other := range servers {
				if _, ok := other[name]; !ok {
					missing[name] = t.create
				}
			}
		}
	}
	return missing, nil
}

// printed finds the name in a statement as the server prints it.
var printed = regexp.MustCompile(`^CREATE (TABLE|MATERIALIZED VIEW|VIEW) (\S+) `)

// onCluster returns a statement that makes a table on all servers of a cluster
// that lack it.
func onCluster(create, cluster string) string {
	return printed.ReplaceAllString(create, "CREATE $1 IF NOT EXISTS $2 ON CLUSTER "+cluster+" ")
}
