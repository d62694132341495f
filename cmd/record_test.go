package cmd

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/")

const recordPage = "../docs/record.md"

// A property is the published schema of a member.
type property struct {
	Ref         string          `json:"$ref"`
	Type        string          `json:"type"`
	Const       json.RawMessage `json:"const"`
	Enum        []string        `json:"enum"`
	Description string          `json:"description"`
	Pattern     string          `json:"pattern"`
	Minimum     json.Number     `json:"minimum"`
	Maximum     json.Number     `json:"maximum"`
	MaxLength   int             `json:"maxLength"`
	Items       *property       `json:"items"`
	Properties  json.RawMessage `json:"properties"`
}

// TestAnomaliesDocument compares the words of calls in docs/record.md with those that the
// program writes.
func TestAnomaliesDocument(t *testing.T) {
	want := (wire.Ambiguous | wire.Oversize | wire.OddID | wire.CandidatesCut).Append(nil)
	for file, pattern := range map[string]string{"mcpproxy/*.go": `(?:\.anomaly\(|amendWaiting\(w, |Anomalies = .*\[\]string\{)"([a-z_]+)"`, "sink/forward.go": `Anomalies = \[\]string\{"([a-z_]+)"\}`} {
		files, err := filepath.Glob("../" + file)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		for _, f := range files {
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(readFile(t, f), -1) {
				want = append(want, m[1])
			}
		}
	}
	_, table, _ := strings.Cut(readFile(t, recordPage), "<!-- anomalies -->")
	table, _, _ = strings.Cut(table, "<!-- end of the anomalies -->")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.+?`) \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		for _, word := range strings.Split(row[1], ", ") {
			got = append(got, strings.Trim(word, "`"))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("the anomalies of docs/record.md differ (-program +page):\n%s", diff)
	}
}

// TestRecordDocument compares the table of members in docs/record.md with the
// published schema and the columns of ClickHouse. A member without a row or a
// column fails, and so does a row or column without a member.
func TestRecordDocument(t *testing.T) {
	columns := eventColumns(t)
	var table strings.Builder
	table.WriteString("| member | type | bound | meaning | column |\n|---|---|---|---|---|\n")
	used := map[string]bool{}
	for _, m := range schemaMembers(t) {
		own := m.columns(t)
		for _, c := range own {
			if used[c] = true; !slices.Contains(columns, c) {
				t.Errorf("member %q has no column %q in schemas/clickhouse: add a migration", m.name, c)
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind(), m.bound(), strings.ReplaceAll(m.Description, "|", "\\|"), code(own))
	}
	page := readFile(t, recordPage)
	const begin, end = "<!-- members of a record -->\n", "<!-- end of the members -->"
	before, rest, ok := strings.Cut(page, begin)
	old, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no %q and %q", recordPage, begin, end)
	}
	want := "\n" + table.String() + "\n"
	if *update && old != want {
		if err := os.WriteFile(recordPage, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		old = want
	}
	if diff := cmp.Diff(strings.Split(old, "\n"), strings.Split(want, "\n")); diff != "" {
		t.Errorf("the table of members is not that of the schema; run: go test ./cmd -run TestRecordDocument -update\n(-page +schema)\n%s", diff)
	}
	_, others, _ := strings.Cut(after, "## Other columns")
	others, _, _ = strings.Cut(others, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(others, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			if used[name[1]] = true; !slices.Contains(columns, name[1]) {
				t.Errorf("%s documents column %q, which events does not have", recordPage, name[1])
			}
		}
	}
	for _, c := range columns {
		if !used[c] {
			t.Errorf("column %q of events is neither a member's nor in the section Other columns of %s", c, recordPage)
		}
	}
}

// A member is one of the record, as in the schema.
type member struct {
	name string
	property
}

// schemaMembers returns the members in the order of the schema.
func schemaMembers(t *testing.T) (list []member) {
	t.Helper()
	var doc struct{ Properties json.RawMessage }
	if err := json.Unmarshal(schemas.RecordV1(), &doc); err != nil {
		t.Fatal(err)
	}
	err := jsontext.Members([]byte(doc.Properties), func(name, value []byte) bool {
		m := member{name: string(jsontext.AppendUnquote(nil, name))}
		if len(name) > 0 && name[0] != '"' {
			m.name = string(name)
		}
		if err := json.Unmarshal(value, &m.property); err != nil {
			t.Errorf("member %q: %v", m.name, err)
		}
		list = append(list, m)
		return true
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("reading the members of the schema: found %d, %v", len(list), err)
	}
	return list
}

// kind is the type of a member, in words.
func (p property) kind() string {
	switch {
	case strings.HasSuffix(p.Ref, "/time"):
		return "time"
	case strings.HasSuffix(p.Ref, "/digest"):
		return "digest"
	case strings.HasSuffix(p.Ref, "/peer"):
		return "peer"
	case string(p.Const) == "true" || string(p.Const) == "false":
		return "boolean"
	case p.Const != nil:
		return "integer"
	case p.Enum != nil:
		return "string"
	case p.Items != nil:
		return "list of " + p.Items.Type + "s"
	}
	return p.Type
}

// bound is the schema's limit on the values.
func (p property) bound() string {
	var words []string
	switch {
	case p.Const != nil:
		words = append(words, "`"+string(p.Const)+"`")
	case p.Enum != nil:
		words = append(words, code(p.Enum))
	case strings.Contains(p.Pattern, "-7["):
		words = append(words, "UUIDv7, lower case")
	case p.Pattern != "":
		words = append(words, "`"+strings.ReplaceAll(p.Pattern, "|", "\\|")+"`")
	}
	if p.MaxLength > 0 {
		words = append(words, fmt.Sprintf("%d code points", p.MaxLength))
	}
	if p.Minimum != "" {
		words = append(words, "from "+string(p.Minimum))
	}
	if p.Maximum != "" {
		words = append(words, "to "+string(p.Maximum))
	}
	if p.Items != nil && p.Items.Pattern != "" {
		words = append(words, "each `"+p.Items.Pattern+"`")
	}
	return strings.Join(words, " ")
}

// columns are the columns that hold a member: none for the checksum, which
// stays in raw, and one for each part of a peer or a command.
func (m member) columns(t *testing.T) (names []string) {
	t.Helper()
	declared := audit.FindMember(m.name)
	if declared == nil {
		t.Fatalf("the schema has %q, which audit.RecordMembers lacks", m.name)
	}
	for _, c := range declared.Columns() {
		names = append(names, c.Name)
	}
	return names
}

// eventColumns returns the columns of the table events that the migrations
// make, in their order.
func eventColumns(t *testing.T) (columns []string) {
	t.Helper()
	migrations, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	create := regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS \$\{database\}\.events .*?\n\)`)
	column := regexp.MustCompile("(?m)^    `?([a-z_]+)`? +[A-Z]")
	add := regexp.MustCompile(`(?s)ALTER TABLE \$\{database\}\.events\b.*?;`)
	added := regexp.MustCompile("ADD COLUMN (?:IF NOT EXISTS )?`?([a-z_]+)`?")
	for _, m := range migrations {
		for _, c := range column.FindAllStringSubmatch(create.FindString(m.SQL), -1) {
			columns = append(columns, c[1])
		}
		for _, statement := range add.FindAllString(m.SQL, -1) {
			for _, c := range added.FindAllStringSubmatch(statement, -1) {
				columns = append(columns, c[1])
			}
		}
	}
	if len(columns) < 50 {
		t.Fatalf("found %d columns of events, want at least 50: the patterns of this test no longer match", len(columns))
	}
	return columns
}

// code joins names for a cell of a table.
func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
