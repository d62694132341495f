package clickhouse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/sink"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
)

// flat are the members that have more than one column.
var flat = map[string][]string{
	"client":         {"client_name", "client_version"},
	"server":         {"server_name", "server_version"},
	"server_command": {"server_command", "server_command_args_digest"},
	"crc":            nil, // it is in raw
}

// ours are the columns that no member has.
var ours = []string{"ops", "ops_args", "ops_path", "ops_candidate", "raw", "payload_hash",
	"kafka_topic", "kafka_partition", "kafka_offset", "ingested_at"}

// fieldOf names the field of audit.Record that a member is, where it is not the
// member's own name.
var fieldOf = map[string]string{
	"v": "", "crc": "", // a constant, and a sum of the rest
	"duration_ms": "Duration", "durable": "NotDurable",
}

// published returns the members of the JSON Schema, in order.
func published(t *testing.T) (members []string) {
	t.Helper()
	var doc struct{ Properties json.RawMessage }
	if err := json.Unmarshal(schemas.RecordV1(), &doc); err != nil {
		t.Fatal(err)
	}
	if err := audit.Members(doc.Properties, func(name, _ []byte) bool {
		members = append(members, string(name))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return members
}

// created returns the columns of events as the migrations make them.
func created(t *testing.T) (columns []string) {
	t.Helper()
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	column := regexp.MustCompile("(?m)^    `?([a-z_]+)`? +[A-Z]")
	for _, statement := range schemas.Statements(list[0].SQL, schemas.Names{Database: "audit"}) {
		if strings.Contains(statement, "audit.events") {
			for _, m := range column.FindAllStringSubmatch(statement, -1) {
				columns = append(columns, m[1])
			}
		}
	}
	return columns
}

// TestOneRecord holds together what a record is in Go, in the JSON Schema and
// in ClickHouse.
func TestOneRecord(t *testing.T) {
	var want []string
	fields := map[string]bool{}
	for _, member := range published(t) {
		if columns, ok := flat[member]; ok {
			want = append(want, columns...)
		} else {
			want = append(want, member)
		}
		if name, ok := fieldOf[member]; ok {
			fields[name] = true
		} else {
			fields[strings.ReplaceAll(member, "_", "")] = true
		}
	}
	want = append(want, ours...)
	if diff := cmp.Diff(want, created(t)); diff != "" {
		t.Errorf("columns of events (-schema +table):\n%s", diff)
	}
	var filled []string
	for _, c := range columnsAt(time.Time{}) {
		filled = append(filled, c.name)
	}
	if diff := cmp.Diff(want, filled); diff != "" {
		t.Errorf("columns that are filled (-schema +filled):\n%s", diff)
	}
	record := reflect.TypeFor[audit.Record]()
	for i := range record.NumField() {
		if name := record.Field(i).Name; !fields[name] && !fields[strings.ToLower(name)] {
			t.Errorf("audit.Record.%s is no member of the schema", name)
		}
	}
}

func TestMigrationsMayRunAgain(t *testing.T) {
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	users, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	all := users
	for _, m := range list {
		all += m.SQL
	}
	for _, cluster := range []string{"", "prod"} {
		for _, statement := range schemas.Statements(all, schemas.Names{Database: "audit", Cluster: cluster}) {
			verb, _, _ := strings.Cut(statement, " ")
			if verb == "CREATE" && !strings.Contains(statement, "IF NOT EXISTS") {
				t.Errorf("does not run twice: %s", statement)
			}
			if strings.Contains(statement, "${") {
				t.Errorf("a name is left open: %s", statement)
			}
			// An INSERT has no such clause: what it fills is replicated.
			if on := strings.Contains(statement, "ON CLUSTER prod"); on != (cluster != "") && verb != "INSERT" {
				t.Errorf("with cluster %q: %s", cluster, statement)
			}
			stored := strings.Contains(statement, "ENGINE = ") && !strings.Contains(statement, "ENGINE = Null")
			if r := strings.Contains(statement, "ENGINE = Replicated"); stored && r != (cluster != "") {
				t.Errorf("with cluster %q: %s", cluster, statement)
			}
		}
	}
}

// TestWords compares a column of words with what the driver's library makes of
// the same, at the numbers of words at which a key gets wider.
func TestWords(t *testing.T) {
	for _, words := range []int{0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537} {
		var rows []sink.Row
		for i := range words {
			// Each word twice in a row, and the first one again in between.
			for _, n := range []int{i, i, 0} {
				rows = append(rows, sink.Row{Source: sink.Source{Topic: fmt.Sprint("t", n)}})
			}
		}
		var got, want proto.Buffer
		topic := func(r *sink.Row) string { return r.Source.Topic }
		word("topic", topic).put(&got, rows)
		c := proto.NewLowCardinality[string](new(proto.ColStr))
		for i := range rows {
			c.Append(topic(&rows[i]))
		}
		if err := c.Prepare(); err != nil {
			t.Fatal(err)
		}
		c.EncodeState(&want)
		c.EncodeColumn(&want)
		if !bytes.Equal(got.Buf, want.Buf) {
			t.Errorf("%d words are %d bytes, want %d others", words, len(got.Buf), len(want.Buf))
		}
	}
}
