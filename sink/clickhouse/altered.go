package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"auditproxy/schemas"
)

// altered returns the columns of the program's tables that are not there, or have another
// type, and the statements that mend them. Views fill a table without a column that it
// lacks, and cut numbers to the type that they find; nothing else would say so. It knows
// nothing of tables whose columns this user has no right to see.
func (db *DB) altered(ctx context.Context) (columns, remedies []string, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	var there []struct {
		Table string `ch:"table"`
		Name  string `ch:"name"`
		Type  string `ch:"type"`
	}
	if err := db.conn.Select(ctx, &there, "SELECT table, name, type FROM system.columns WHERE database = ?", db.c.Database); err != nil {
		return nil, nil, err
	}
	types := map[string]map[string]string{} // by table and column
	for _, c := range there {
		if types[c.Table] == nil {
			types[c.Table] = map[string]string{}
		}
		types[c.Table][c.Name] = c.Type
	}
	for _, c := range schemas.Columns() {
		for _, table := range slices.Compact([]string{c.Table, db.c.Cluster.Part(c.Table)}) {
			has, visible := types[table]
			how := ""
			switch typ, ok := has[c.Name]; {
			case !visible:
			case !ok:
				how = "ADD"
			case plain(typ) != plain(c.Type):
				how = "MODIFY"
			}
			if how == "" {
				continue
			}
			columns = append(columns, table+"."+c.Name)
			remedies = append(remedies, strings.TrimSpace(fmt.Sprintf("ALTER TABLE %s.%s %s COLUMN `%s` %s %s", db.c.Database, table, how, c.Name, c.Type, c.Default)))
		}
	}
	return columns, remedies, nil
}

// queries finds the query that a statement gives a view.
var queries = regexp.MustCompile(`(?s)^(?:CREATE MATERIALIZED VIEW IF NOT EXISTS|CREATE VIEW IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE) \w+\.(\w+) .*?\b(?:AS|MODIFY QUERY)\s+(SELECT\b.*)$`)

// rewritten returns the views that are there with another query than this program gave
// them, and the statements that mend them. It knows nothing of what a newer one gave them.
func (db *DB) rewritten(ctx context.Context) (views, remedies []string, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	statements, err := db.statements()
	if err != nil {
		return nil, nil, err
	}
	last := map[string]string{} // query of a view
	for _, s := range statements {
		if m := queries.FindStringSubmatch(s); m != nil {
			last[m[1]] = m[2]
		}
	}
	names, texts := slices.Sorted(maps.Keys(last)), []string{}
	for _, name := range names {
		texts = append(texts, last[name])
	}
	list, err := schemas.ClickHouse()
	if err != nil {
		return nil, nil, err
	}
	var there []struct {
		Name  string    `ch:"name"`
		Fills bool      `ch:"fills"`
		Since time.Time `ch:"since"`
		Want  string    `ch:"want"`
	}
	// The server prints both, so that they differ in nothing but what they do.
	err = db.conn.Select(ctx, &there, `SELECT name, engine = 'MaterializedView' AS fills, toTimeZone(metadata_modification_time, 'UTC') AS since, formatQuerySingleLine(arrayElement(?, indexOf(?, name))) AS want
		FROM system.tables WHERE database = ? AND name IN (?) AND as_select != '' AND formatQuerySingleLine(as_select) != want
		AND (SELECT max(number) FROM `+db.c.Database+`.migrations) <= ? ORDER BY name`, texts, names, db.c.Database, names, len(list))
	for _, v := range there {
		views = append(views, fmt.Sprintf("%q since %s", v.Name, v.Since.Format(time.DateTime)))
		change := "CREATE OR REPLACE VIEW %s.%s AS %s"
		if v.Fills {
			change = "ALTER TABLE %s.%s MODIFY QUERY %s"
		}
		remedies = append(remedies, fmt.Sprintf(change, db.c.Database, v.Name, v.Want))
	}
	return views, remedies, err
}

// moves matches a TTL of a table that moves its parts, or packs them again, and removes none.
const moves = `^([^,]+ (TO (VOLUME|DISK) \'[^\']*\'|RECOMPRESS CODEC\([^,]*\))(, )?)+$`

// redefined returns the columns of the program's tables that are there with another default,
// and the columns and tables with a TTL that removes, and the statements that mend them. How
// values are packed only costs. It knows nothing of what a newer program gave them.
func (db *DB) redefined(ctx context.Context) (names, remedies []string, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	var columns, kinds, expressions, tables []string
	wants := map[string]schemas.Column{}
	for _, c := range schemas.Columns() {
		c.Table = db.c.Cluster.Part(c.Table)
		kind, expression, _ := strings.Cut(c.Default, " ")
		name := c.Table + "." + c.Name
		columns, kinds, expressions, tables = append(columns, name), append(kinds, kind), append(expressions, expression), append(tables, c.Table)
		wants[name] = c
	}
	list, err := schemas.ClickHouse()
	if err != nil {
		return nil, nil, err
	}
	var there []struct {
		Name string `ch:"name"`
		Kind string `ch:"kind"` // of another default; TTL; "": its own default is not there
	}
	// The server prints both expressions, so that they differ in nothing but what they do.
	err = db.conn.Select(ctx, &there, `SELECT name, kind FROM (
		SELECT concat(table, '.', name) AS name, default_kind AS kind, indexOf(?, name) AS i FROM system.columns WHERE database = ?
			AND (kind != arrayElement(?, i) OR formatQuerySingleLine(concat('SELECT [', default_expression, ']')) != formatQuerySingleLine(concat('SELECT [', arrayElement(?, i), ']'))) AND i > 0
		UNION ALL SELECT concat(name, '.', arrayJoin(extractAll(splitByString(' ENGINE = ', create_table_query)[1], '`+"`(\\w+)`[^`]*? TTL "+`'))), 'TTL', 0
			FROM system.tables WHERE database = ? AND name IN (?)
		UNION ALL SELECT name, 'TTL', 0 FROM system.tables WHERE database = ? AND name IN (?) AND name != 'retention_looks'
			AND engine_full LIKE '% TTL %' AND NOT match(extract(engine_full, ' TTL (.*?)(?: SETTINGS |$)'), ?))
		WHERE (SELECT max(number) FROM `+db.c.Database+`.migrations) <= ? ORDER BY name, kind`,
		columns, db.c.Database, kinds, expressions, db.c.Database, tables, db.c.Database, tables, moves, len(list))
	for _, t := range there {
		table, column, _ := strings.Cut(t.Name, ".")
		remedy := "ALTER TABLE " + db.c.Database + "." + table
		want := wants[t.Name]
		switch {
		case column == "":
			remedy += " REMOVE TTL"
		case t.Kind == "TTL" || want.Default == "":
			remedy += fmt.Sprintf(" MODIFY COLUMN `%s` REMOVE %s", column, t.Kind)
		default:
			remedy += fmt.Sprintf(" MODIFY COLUMN `%s` %s %s", column, want.Type, want.Default)
		}
		how := "default"
		if t.Kind == "TTL" {
			how = "TTL"
		}
		names, remedies = append(names, how+" of "+t.Name), append(remedies, remedy)
	}
	return names, remedies, err
}

// statements returns those of all migrations.
func (db *DB) statements() (all []string, err error) {
	list, err := schemas.ClickHouse()
	for _, m := range list {
		all = append(all, schemas.Statements(m.SQL, db.names())...)
	}
	return all, err
}

// plain returns a type without how its values are kept, which changes none.
func plain(typ string) string {
	if inner, ok := strings.CutPrefix(typ, "LowCardinality("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return typ
}
