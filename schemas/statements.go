package schemas

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Names are the parameters of the SQL.
type Names struct {
	Database string  // an identifier: letters, digits and underscores
	Cluster  Cluster // the zero value: one server
}

// A Cluster is where tables are replicated, and by what paths. Its texts go into
// the SQL as they are, so they contain no quotes.
type Cluster struct {
	Name string // in ClickHouse's remote_servers; an identifier

	// ReplicaPath and ReplicaName are a table's place in Keeper. <database> and
	// <table> stand for its names; the servers fill in macros such as {shard}.
	ReplicaPath, ReplicaName string

	// Distributed spreads the records over the cluster's shards: their tables get
	// other names, and Distributed tables take the ones that readers use.
	Distributed bool
}

// spread are the tables of which each shard has its part: those in which every
// row is of one session. All rows of a session are on one shard, so FINAL there
// is as good as everywhere. Of the other tables all servers have all rows.
var spread = []string{"events", "review_intake", "operation_states", "session_states", "decision_states", "risk_states", "arrivals", "leaves", "verifications"}

// Part returns the name of the table that has a server's rows of a table.
func (c Cluster) Part(table string) string {
	if c.Name != "" && c.Distributed && slices.Contains(spread, table) {
		return local(table)
	}
	return table
}

// shardOf is the session's shard.
const shardOf = "cityHash64(session_id)"

// local is the name of a shard's part of a table.
func local(table string) string { return table + "_local" }

// Statements returns the statements of sql, with the names filled in. A
// statement ends with a semicolon at the end of its line. On a cluster the
// tables are replicated ones.
func Statements(sql string, n Names) []string {
	var list []string
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimRight(line, " \n"), ";") {
			list = append(list, n.statements(strings.TrimSuffix(strings.TrimSpace(b.String()), ";"))...)
			b.Reset()
		}
	}
	if last := strings.TrimSpace(b.String()); last != "" { // without a semicolon, or with a comment behind it
		list = append(list, n.statements(last)...)
	}
	return list
}

// statements returns what does on n's servers what one statement says.
func (n Names) statements(statement string) []string {
	onCluster, replicated := "", ""
	if n.Cluster.Name != "" {
		onCluster, replicated = "ON CLUSTER "+n.Cluster.Name, "Replicated"
	}
	list := []string{statement}
	if n.Cluster.Name != "" && n.Cluster.Distributed {
		list = distribute(statement)
	}
	for i, s := range list {
		if n.Cluster.Name != "" {
			s = n.Cluster.replicate(s)
		}
		list[i] = strings.NewReplacer("${cluster}", n.Cluster.Name, "${database}", n.Database, "${on_cluster}", onCluster, "${replicated}", replicated,
			"<database>", n.Database).Replace(s)
	}
	return list
}

var (
	creates    = regexp.MustCompile(`^CREATE TABLE IF NOT EXISTS \$\{database\}\.(\w+) `)
	engine     = regexp.MustCompile(`\bENGINE = \$\{replicated\}(\w+)(?:\(([^)]*)\))?`)
	alone      = regexp.MustCompile(`\bnon_replicated_deduplication_window = \d+,\s*`)
	settings   = regexp.MustCompile(`\bSETTINGS `)
	stored     = regexp.MustCompile(`(?:\bFROM )?\$\{database\}\.(\w+)`)
	alters     = regexp.MustCompile(`^ALTER TABLE \$\{database\}\.(\w+) `)
	drops      = regexp.MustCompile(`^DROP TABLE IF EXISTS \$\{database\}\.(\w+) `)
	lastColumn = regexp.MustCompile(`(\n    ingested_at +DateTime64\(3, 'UTC'\)[^,]*,[^\n]*\n)`)
)

// The blocks of which a replicated table knows the tokens. A batch is sent again
// with its token until it is stored, so this is the longest time for which
// collectors may have no answer, a week as Kafka keeps records, and the inserts
// of others meanwhile: two a second for twelve hours. Beyond, a repeated batch is
// stored twice, and its records collapse as those do that Kafka has twice.
// Keeper holds a node for each, and rows of other tables than events collapse by
// themselves.
const (
	windowSeconds = 7 * 24 * 60 * 60
	windowBlocks  = 10_000
	windowEvents  = 100_000
)

// precedence is the column of 0009_arrivals.sql. On a cluster events has it from
// the start, because no engine can be altered, and tables that are exchanged
// would exchange their places in Keeper as well.
const precedence = "    precedence                 UInt64 MATERIALIZED 18446744073709551615 - toUInt64(toUnixTimestamp64Milli(ingested_at)) CODEC(Delta(8), ZSTD(1)),\n"

// replicate gives a statement that creates a table a replicated engine.
func (c Cluster) replicate(statement string) string {
	m := creates.FindStringSubmatch(statement)
	if m == nil || !engine.MatchString(statement) {
		return statement
	}
	table, path, name, window := m[1], c.ReplicaPath, c.ReplicaName, windowBlocks
	if c.Distributed && !strings.HasSuffix(table, local("")) {
		// Every server of every shard is a replica of it.
		path, name = strings.ReplaceAll(path, "{shard}", "all"), "{shard}-"+name
	}
	arguments := []string{"'" + strings.NewReplacer("<table>", table).Replace(path) + "'", "'" + name + "'"}
	if own := engine.FindStringSubmatch(statement)[2]; own != "" {
		arguments = append(arguments, own)
	}
	if table == "events" || table == local("events") {
		window = windowEvents
		arguments = append(arguments, "precedence")
		statement = lastColumn.ReplaceAllString(statement, "${1}"+precedence)
	}
	statement = engine.ReplaceAllString(statement, "ENGINE = $${replicated}${1}("+strings.ReplaceAll(strings.Join(arguments, ", "), "$", "$$")+")")
	statement = alone.ReplaceAllString(statement, "")
	return settings.ReplaceAllString(statement, fmt.Sprintf("SETTINGS replicated_deduplication_window = %d, replicated_deduplication_window_seconds = %d,\n         ", window, windowSeconds))
}

// distribute returns the statements for tables that are spread over shards. What
// feeds and alters tables works on each shard's part; what reads, and what fills
// tables from others, uses the Distributed ones.
func distribute(statement string) []string {
	locals := stored.ReplaceAllStringFunc(statement, func(name string) string {
		from, table, _ := strings.Cut(name, ".")
		switch {
		case !slices.Contains(spread, table):
			return name
		case strings.HasPrefix(from, "FROM "): // its columns may be named with it
			return local(name) + " AS " + table
		}
		return local(name)
	})
	if strings.HasPrefix(statement, "CREATE SETTINGS PROFILE") {
		// A query within another is about the same sessions, and so the same shard.
		return []string{statement + ", distributed_product_mode = 'local'"}
	}
	if locals == statement {
		return []string{statement}
	}
	target := func(re *regexp.Regexp) string {
		if m := re.FindStringSubmatch(statement); m != nil && slices.Contains(spread, m[1]) {
			return m[1]
		}
		return ""
	}
	verb, _, _ := strings.Cut(statement, " ")
	switch {
	case target(creates) != "":
		return []string{locals, distributed(target(creates))}
	case target(alters) != "": // its columns may be others
		return []string{locals, distributed(target(alters))}
	case target(drops) != "":
		return []string{"DROP TABLE IF EXISTS ${database}." + target(drops) + " ${on_cluster}", locals}
	case verb == "TRUNCATE":
		return []string{locals}
	case verb == "ALTER", strings.HasPrefix(statement, "CREATE MATERIALIZED VIEW"):
		return []string{nestJoins(locals)}
	case verb == "GRANT", verb == "REVOKE", strings.HasPrefix(statement, "CREATE ROW POLICY"):
		// A query on a Distributed table is one on the parts, by the same user.
		return []string{statement, locals}
	}
	return []string{statement} // CREATE VIEW, INSERT
}

// twoJoins finds two ARRAY JOIN, one after the other.
var twoJoins = regexp.MustCompile(`\nFROM (\S+ AS \w+)\nARRAY JOIN (.*)\nARRAY JOIN `)

// nestJoins puts the first of two ARRAY JOIN in a subquery: an insert that comes
// from another server passes a view behind a view by the engine's old analyzer,
// which knows only one.
func nestJoins(statement string) string {
	m := twoJoins.FindStringSubmatch(statement)
	if m == nil {
		return statement
	}
	columns := "*"
	for _, alias := range aliases.FindAllStringSubmatch(m[2], -1) {
		columns += ", " + alias[1]
	}
	return strings.Replace(statement, m[0], "\nFROM (SELECT "+columns+" FROM "+m[1]+" ARRAY JOIN "+m[2]+")\nARRAY JOIN ", 1)
}

var aliases = regexp.MustCompile(` AS (\w+)`)

// distributed returns the statement that makes the Distributed table over a
// table's parts, or another in place of it: it holds nothing.
func distributed(table string) string {
	return "CREATE OR REPLACE TABLE ${database}." + table + " ${on_cluster} AS ${database}." + local(table) +
		"\nENGINE = Distributed('${cluster}', '${database}', '" + local(table) + "', " + shardOf + ")"
}
