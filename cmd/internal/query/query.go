// Package query runs a statement in ClickHouse and prints its rows.
//
// The files, from the top: query, rows, columntype.
package query

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ownFormat finds a FORMAT clause in a statement.
var ownFormat = regexp.MustCompile(`(?i)\sFORMAT\s+\w+\s*;?\s*$`)

// Run runs sql and writes its rows to w as they arrive. explain words the
// errors of db.
func Run(ctx context.Context, db driver.Conn, sql string, w Writer, explain func(error) error) error {
	if strings.TrimSpace(sql) == "" {
		return errors.New("the statement is empty; see auditcollector query --help for some")
	}
	if ownFormat.MatchString(sql) {
		return errors.New("the statement names a FORMAT of its own; use --format table, json or csv")
	}
	rows, err := db.Query(ctx, sql)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	types := rows.ColumnTypes()
	values := make([]any, len(types))
	for i, t := range types {
		values[i] = reflect.New(t.ScanType()).Interface()
	}
	if err := w.header(rows.Columns()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	row := make([]any, len(values))
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return fmt.Errorf("reading a row: %w", err)
		}
		for i, v := range values {
			if row[i], err = plainValue(reflect.ValueOf(v).Elem(), columnType(types[i].DatabaseTypeName())); err != nil {
				return fmt.Errorf("printing column %q: %w", types[i].Name(), err)
			}
		}
		if err := w.row(row); err != nil {
			return IgnoreClosed(err)
		}
	}
	if err := rows.Err(); err != nil {
		// The rows before it are valid, so they are shown; the exit code
		// reports the error.
		return errors.Join(IgnoreClosed(w.end()), explain(err))
	}
	return IgnoreClosed(w.end())
}

// IgnoreClosed returns an error of printing, nil for that of a closed pipe, as
// under head.
func IgnoreClosed(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("printing: %w", err)
}
