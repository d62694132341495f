// Package schemas is the published artefacts, embedded.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed record.v1.schema.json
var recordV1 []byte

// RecordV1 returns the JSON Schema (draft 2020-12) of one line of the audit
// trail, see audit.Record.
func RecordV1() []byte { return append([]byte(nil), recordV1...) }

//go:embed alert-rules.v1.schema.json
var alertRulesV1 []byte

// AlertRulesV1 returns the JSON Schema (draft 2020-12) of a file of alert rules,
// see package alert.
func AlertRulesV1() []byte { return append([]byte(nil), alertRulesV1...) }

//go:embed clickhouse/*.sql
var clickhouse embed.FS

// A Migration is one numbered change of ClickHouse's tables.
type Migration struct {
	Number int    // 1, 2, 3… without a hole
	Name   string // of its file, without number and extension
	SQL    string // statements, each safe to run again; see Statements
}

// ClickHouse returns the migrations in order.
func ClickHouse() ([]Migration, error) {
	names, err := fs.Glob(clickhouse, "clickhouse/[0-9]*.sql")
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	var list []Migration
	for i, name := range names {
		text, err := clickhouse.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading migrations: %w", err)
		}
		base := path.Base(name)
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(base, want) {
			return nil, fmt.Errorf("reading migrations: file %q, want one that starts with %q", base, want)
		}
		list = append(list, Migration{i + 1, strings.TrimSuffix(base[len("0000_"):], ".sql"), string(text)})
	}
	return list, nil
}

// ClickHouseUsers returns the roles, the reader's profile and the row policies.
// They are not a migration, because not every server manages access.
func ClickHouseUsers() (string, error) {
	text, err := clickhouse.ReadFile("clickhouse/users.sql")
	if err != nil {
		return "", fmt.Errorf("reading roles: %w", err)
	}
	return string(text), nil
}

// Names are the parameters of the SQL.
type Names struct {
	Database string // an identifier: letters, digits and underscores
	Cluster  string // an identifier; "" for one server
}

// Statements returns the statements of sql, with the names filled in. A
// statement ends with a semicolon at the end of its line. On a cluster the
// tables are replicated ones.
func Statements(sql string, n Names) []string {
	onCluster, replicated := "", ""
	if n.Cluster != "" {
		onCluster, replicated = "ON CLUSTER "+n.Cluster, "Replicated"
	}
	sql = strings.NewReplacer("${database}", n.Database, "${on_cluster}", onCluster, "${replicated}", replicated).Replace(sql)
	var list []string
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimRight(line, " \n"), ";") {
			list = append(list, strings.TrimSuffix(strings.TrimSpace(b.String()), ";"))
			b.Reset()
		}
	}
	return list
}
