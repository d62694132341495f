// Package schemas is the published artefacts, embedded.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
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

//go:embed receivers.v1.schema.json
var receiversV1 []byte

// ReceiversV1 returns the JSON Schema (draft 2020-12) of a file of receivers of
// exports, see export.receivers.
func ReceiversV1() []byte { return append([]byte(nil), receiversV1...) }

//go:embed clickhouse/*.sql
var clickhouse embed.FS

//go:embed clickhouse/columns.txt
var columns string

// A Migration is one numbered change of ClickHouse's tables.
type Migration struct {
	Number int    // 1, 2, 3… without a hole
	Name   string // of its file, without number and extension
	SQL    string // statements, each safe to run again; see Statements

	// Needs is the newest migration that a program must know to work with the
	// tables after this one: its own number, unless a line "-- needs: N" says
	// less. It may say so if a program that knows N and no later one inserts and
	// reads what it did before: the migration only adds indexes, views, tables
	// that such a program does not feed, or columns with defaults that it need
	// not fill. What it renames, drops or gives another meaning, others need.
	Needs int
}

// needs finds the line of Migration.Needs.
func needs(sql string, own int) (int, error) {
	for line := range strings.Lines(sql) {
		text, ok := strings.CutPrefix(line, "-- needs: ")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > own {
			return 0, fmt.Errorf("%q: want a number from 1 to %d", strings.TrimSpace(line), own)
		}
		return n, nil
	}
	return own, nil
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
		least, err := needs(string(text), i+1)
		if err != nil {
			return nil, fmt.Errorf("reading migration %q: %w", base, err)
		}
		list = append(list, Migration{i + 1, strings.TrimSuffix(base[len("0000_"):], ".sql"), string(text), least})
	}
	return list, nil
}

// A Column is a column of a table that the migrations make.
type Column struct{ Table, Name, Type, Default string } // Default: "" or "DEFAULT …"

// Columns returns the columns of all tables.
func Columns() (list []Column) {
	for line := range strings.Lines(columns) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, Column{f[0], f[1], f[2], strings.Join(f[3:], " ")})
	}
	return list
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
