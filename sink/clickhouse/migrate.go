package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
)

// ErrNewer means that a newer program made tables that this one cannot use.
var ErrNewer = errors.New("the schema is newer than this program: install the version that made it")

// A Retention is the age at which rows are removed, in whole days, at most
// MaxRetention, which package retention does, and the age at which records move
// to cold storage.
type Retention struct {
	Events      time.Duration            // events, gaps, rollups and alerts. Required.
	Tenants     map[string]time.Duration // of tenants whose time is not that of Events
	DeadLetters time.Duration            // Required.

	StoragePolicy string        // of events; "" changes nothing
	ColdAfter     time.Duration // in whole days; 0: never
	ColdVolume    string        // of StoragePolicy. Required with ColdAfter.

	// Show is called with each statement about storage before it runs; nil: none.
	Show func(statement string)
}

// MaxRetention keeps times inside what ClickHouse's DateTime can hold, which
// begins in 1970.
const MaxRetention = 10000 * 24 * time.Hour

// Applied lists the changes of Migrate.
type Applied struct {
	Migrations []string // "0001_tables"; none: the tables were current
	Users      bool     // roles and row policies; not every server has them
	Newer      int      // migrations of a newer program that this one can work with
}

// Migrate applies missing migrations, in order. After a crash some statements
// may have run without a record; every statement may run again. If the tables
// are current it only reads, so that a user without the right to make tables
// may call it.
//
// There is no lock: ClickHouse has none that a crash releases. Of programs that
// migrate at once, one may fail at a table that another is replacing. So it
// starts again as long as more migrations are recorded than at its last start.
func (db *DB) Migrate(ctx context.Context, keep Retention) (Applied, error) {
	var all Applied
	for {
		recorded, _ := db.done(ctx) // an error shows below
		applied, err := db.migrate(ctx, keep)
		all.Migrations = append(all.Migrations, applied.Migrations...)
		all.Users, all.Newer = applied.Users, applied.Newer
		if err == nil {
			return all, nil
		}
		if after, failed := db.done(ctx); failed != nil || len(after) <= len(recorded) {
			return all, err
		}
	}
}

func (db *DB) migrate(ctx context.Context, keep Retention) (Applied, error) {
	var applied Applied
	list, err := schemas.ClickHouse()
	if err != nil {
		return applied, err
	}
	if db.c.Cluster.Name != "" {
		if err := db.join(ctx); err != nil {
			return applied, Classify("comparing the servers of the cluster", err)
		}
	}
	done, err := db.done(ctx)
	if code := codeOf(err); slices.Contains(notThereCodes, code) || code == unknownIdentifier {
		err = db.exec(ctx, schemas.Statements(migrationsTable, db.names())...)
		if err != nil {
			return applied, Classify("making the table of migrations", err)
		}
		done, err = db.done(ctx) // it may have been there without a column
	}
	if err != nil {
		return applied, Classify("reading the table of migrations", err)
	}
	for number, m := range done {
		switch {
		case number <= len(list):
		case m.needs > len(list):
			return applied, &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("migration %d: %w", number, ErrNewer)}
		default:
			applied.Newer++
		}
	}
	for _, m := range list {
		name, sum := fmt.Sprintf("%04d_%s", m.Number, m.Name), checksum(m.SQL)
		if was, ok := done[m.Number]; ok {
			if was.sum != sum {
				return applied, &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("migration %q is not the one that was applied: install the version of this program that made the tables", name)}
			}
			continue
		}
		if err := db.apply(ctx, schemas.Statements(m.SQL, db.names())); err != nil {
			return applied, Classify(fmt.Sprintf("applying migration %q", name), err)
		}
		err := db.conn.Exec(ctx, "INSERT INTO "+db.c.Database+".migrations (number, name, sha256, needs, applied_at) VALUES (?, ?, ?, ?, now64(3))", m.Number, name, sum, m.Needs)
		if err != nil {
			return applied, Classify(fmt.Sprintf("recording migration %q", name), err)
		}
		applied.Migrations = append(applied.Migrations, name)
	}
	if err := db.keepFirst(ctx, slices.Contains(applied.Migrations, "0001_tables") && len(done) == 0); err != nil {
		return applied, Classify("keeping first arrivals", err)
	}
	if err := db.tier(ctx, keep); err != nil {
		return applied, err
	}
	if err := db.boundMerges(ctx); err != nil {
		return applied, err
	}
	if applied.Newer > 0 {
		return applied, nil // the newer program's roles stay, and its tables are others
	}
	if err := db.Dropped(ctx); err != nil {
		return applied, err
	}
	applied.Users, err = db.users(ctx)
	return applied, err
}

// unknownIdentifier is ClickHouse's code for a column that is not there, as
// needs in the table of an older program.
const unknownIdentifier = 47

// An appliedMigration is what the table of migrations has of one.
type appliedMigration struct {
	sum   string
	needs int // see schemas.Migration
}

// done returns the migrations that were applied.
func (db *DB) done(ctx context.Context) (map[int]appliedMigration, error) {
	rows, err := db.conn.Query(ctx, "SELECT number, sha256, needs FROM "+db.c.Database+".migrations FINAL ORDER BY applied_at")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	done := map[int]appliedMigration{}
	for rows.Next() {
		var number, needs uint32
		var sum string
		if err := rows.Scan(&number, &sum, &needs); err != nil {
			return nil, err
		}
		done[int(number)] = appliedMigration{sum, int(needs)}
	}
	return done, rows.Err()
}

func checksum(sql string) string {
	sum := sha256.Sum256([]byte(sql))
	return hex.EncodeToString(sum[:])
}

func (db *DB) apply(ctx context.Context, statements []string) error {
	ctx, cancel := db.Long(ctx)
	defer cancel()
	return db.exec(ctx, statements...)
}

// tier sets where the parts of events are stored, and removes every TTL that
// deletes, which older programs gave the tables: it knows neither tenants nor
// holds.
func (db *DB) tier(ctx context.Context, keep Retention) error {
	var found []struct {
		Name   string `ch:"name"`
		Engine string `ch:"engine_full"` // with the table's TTL, not those of columns
		Policy string `ch:"storage_policy"`
	}
	err := db.conn.Select(ctx, &found, "SELECT name, engine_full, storage_policy FROM system.tables WHERE database = ? AND engine LIKE '%MergeTree' AND name != 'retention_looks' ORDER BY name", db.c.Database)
	if err != nil {
		return Classify("looking at where tables are stored", err)
	}
	own, err := db.ownTables()
	if err != nil {
		return err
	}
	for _, t := range found {
		if !own[t.Name] {
			continue // an administrator's
		}
		var statements []string
		alter := "ALTER TABLE ${database}." + t.Name + " ${on_cluster} "
		ttl := ""
		if t.Name == db.Part("events") {
			if keep.StoragePolicy != "" && keep.StoragePolicy != t.Policy {
				statements = append(statements, alter+"MODIFY SETTING storage_policy = '"+keep.StoragePolicy+"'")
			}
			if days := int(min(keep.ColdAfter, MaxRetention) / (24 * time.Hour)); days > 0 {
				ttl = fmt.Sprintf("TTL toDateTime(ts) + toIntervalDay(%d) TO VOLUME '%s'", days, keep.ColdVolume)
			}
		}
		switch is := strings.Contains(t.Engine, " TTL "); {
		case ttl != "" && !strings.Contains(t.Engine, ttl+" "):
			statements = append(statements, alter+"MODIFY "+ttl)
		case ttl == "" && is:
			statements = append(statements, alter+"REMOVE TTL")
		}
		for _, s := range statements {
			s = schemas.Statements(s+";", db.names())[0]
			if keep.Show != nil {
				keep.Show(s)
			}
			if err := db.exec(ctx, s); err != nil {
				return Classify(fmt.Sprintf("setting where %q is stored", t.Name), err)
			}
		}
	}
	return nil
}

// A merge of events makes the index of their words again. In memory that takes 1.5
// times their compressed bytes, and about 4 times if hardly a word occurs twice: 1.2
// GiB for 6.5 million records, whose columns take 77 MiB. So on a server with little
// memory, as the local engine, merges are bounded: otherwise what a year brings
// together cannot be merged, and takes the memory of readers again and again.
const (
	littleMemory = 16 << 30 // the default bound, 150 GiB, is for more
	mergeShare   = 8        // of the memory is the most bytes of a merge
)

// boundMerges bounds merges of events on a server with little memory. A server that
// does not tell its memory, or a user who may not alter tables, keeps the default.
func (db *DB) boundMerges(ctx context.Context) error {
	var found []struct {
		Create string `ch:"create_table_query"`
		Memory uint64 `ch:"memory"`
	}
	err := db.conn.Select(ctx, &found, `
		SELECT create_table_query, (SELECT max(toUInt64OrZero(value)) FROM system.server_settings WHERE name = 'max_server_memory_usage') AS memory
		FROM system.tables WHERE database = ? AND name = ?`, db.c.Database, db.Part("events"))
	if slices.Contains(notThereCodes, codeOf(err)) || slices.Contains(noUsersCodes, codeOf(err)) {
		return nil
	}
	if err != nil {
		return Classify("looking at the server's memory", err)
	}
	for _, t := range found {
		change := mergeBound(t.Create, t.Memory)
		if change == "" {
			continue
		}
		statement := "ALTER TABLE ${database}." + db.Part("events") + " ${on_cluster} " + change + ";"
		err := db.exec(ctx, schemas.Statements(statement, db.names())...)
		if err != nil && !slices.Contains(noUsersCodes, codeOf(err)) {
			return Classify("bounding merges", err)
		}
	}
	return nil
}

// The settings of a bound. Without the second one, a merge beside others would be
// much smaller.
var bounds = regexp.MustCompile(`\bmax_bytes_to_merge_at_max_space_in_pool = (\d+), number_of_free_entries_in_pool_to_lower_max_size_of_merge = 2\b`)

// mergeBound returns how a table that was made by create is to change on a server
// with so much memory, 0 if it is not known; "" for not at all.
func mergeBound(create string, memory uint64) string {
	has := bounds.FindStringSubmatch(create)
	most := strconv.FormatUint(memory/mergeShare, 10)
	switch {
	case memory == 0:
		return ""
	case memory >= littleMemory && has != nil: // it was moved to another server
		return "RESET SETTING max_bytes_to_merge_at_max_space_in_pool, number_of_free_entries_in_pool_to_lower_max_size_of_merge"
	case memory >= littleMemory || has != nil && has[1] == most:
		return ""
	}
	return "MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = " + most + ", number_of_free_entries_in_pool_to_lower_max_size_of_merge = 2"
}

// users makes the roles, and reports whether the server supports them.
func (db *DB) users(ctx context.Context) (bool, error) {
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		return false, err
	}
	for _, statement := range schemas.Statements(sql, db.names()) {
		for _, s := range append([]string{statement}, renewed(statement)...) {
			if err := db.exec(ctx, s); slices.Contains(noUsersCodes, codeOf(err)) {
				return false, nil
			} else if err != nil {
				return false, Classify("making roles", err)
			}
		}
	}
	return true, nil
}

// granted finds what a statement creates if it does not exist.
var granted = regexp.MustCompile(`(?s)^CREATE (SETTINGS PROFILE|ROLE|ROW POLICY) IF NOT EXISTS (.*\b(?:SETTINGS|USING)\b.*)$`)

// renewed returns the statement that gives what exists already the settings,
// or the condition, of a statement that creates it. Otherwise the limits of
// the first version would stay for ever. Not OR REPLACE: the new one would be
// another, which users and roles do not have.
func renewed(statement string) []string {
	m := granted.FindStringSubmatch(statement)
	if m == nil {
		return nil
	}
	return []string{"ALTER " + m[1] + " " + m[2]}
}
