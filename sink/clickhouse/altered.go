package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// plain returns a type without how its values are kept, which changes none.
func plain(typ string) string {
	if inner, ok := strings.CutPrefix(typ, "LowCardinality("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return typ
}
