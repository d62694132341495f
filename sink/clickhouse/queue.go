package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
)

// Exec runs a statement with the placeholders of migrations, and args in the
// place of fmt's verbs. It has no time limit.
func (db *DB) Exec(ctx context.Context, doing, format string, args ...any) error {
	// The names first: an argument may look like a placeholder.
	sql := fmt.Sprintf(schemas.Statements(format+";", db.names())[0], args...)
	return Classify(doing, db.exec(ctx, sql))
}

// Part returns the name of the table that has a server's rows of a table, for
// statements that alter.
func (db *DB) Part(table string) string { return db.c.Cluster.Part(table) }

// exec runs statements one after the other.
func (db *DB) exec(ctx context.Context, statements ...string) error {
	if _, limited := ctx.Deadline(); db.c.Cluster.Name != "" && !limited {
		// The server itself waits for the others for three minutes.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
	}
	for _, sql := range statements {
		err := db.conn.Exec(ctx, sql)
		if codeOf(err) == timeoutExceeded && db.c.Cluster.Name != "" {
			err = db.unfinished(ctx, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// timeoutExceeded is the code of a statement that not all servers of a cluster
// ran in time. The others run it when they can.
const timeoutExceeded = 159

// ddlEntry is the statement's name in the queue, as the message has it.
var ddlEntry = regexp.MustCompile(`\bquery-\d+\b`)

// unfinished looks which servers have not run a statement, after an error that
// says so. It returns nil if all of them have meanwhile.
func (db *DB) unfinished(ctx context.Context, err error) error {
	entry := ddlEntry.FindString(err.Error())
	if entry == "" {
		return err // of something else
	}
	var left []struct {
		Host   string `ch:"server"`
		Status string `ch:"state"`
		Failed string `ch:"failed"`
	}
	const sql = `SELECT ifNull(concat(host, ':', toString(port)), '?') AS server, ifNull(toString(status), 'Unknown') AS state, ifNull(exception_text, '') AS failed
		FROM system.distributed_ddl_queue WHERE cluster = ? AND entry = ? AND (state != 'Finished' OR failed != '') ORDER BY server`
	if queueErr := db.conn.Select(ctx, &left, sql, db.c.Cluster.Name, entry); queueErr != nil {
		return fmt.Errorf("%v: a server of the cluster does not run: start it, or remove it from remote_servers; it runs the statement when it starts", err)
	}
	if len(left) == 0 {
		return nil
	}
	var hosts []string
	for _, l := range left {
		if l.Failed != "" {
			return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("server %q of the cluster: %s: correct it there, and repeat", l.Host, l.Failed)}
		}
		hosts = append(hosts, l.Host+" ("+strings.ToLower(l.Status)+")")
	}
	return fmt.Errorf("%v: start %s, or remove it from remote_servers; it runs the statement when it starts", err, strings.Join(hosts, ", "))
}
