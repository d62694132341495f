package clickhouse

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// created returns the columns of events and their types, as "name type", as the
// migrations make them.
func created(t *testing.T) (columns []string) {
	t.Helper()
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	const named = "`?([a-z_]+)`? +([A-Z][A-Za-z0-9]+(?:\\((?:[^()]|\\([^()]*\\))*\\))?)"
	inTable, added := regexp.MustCompile("(?m)^    "+named), regexp.MustCompile("ADD COLUMN IF NOT EXISTS "+named)
	for _, m := range list {
		for _, statement := range schemas.Statements(m.SQL, schemas.Names{Database: "audit"}) {
			column := added
			if strings.HasPrefix(statement, "CREATE TABLE IF NOT EXISTS audit.events ") {
				column = inTable
			} else if !strings.HasPrefix(statement, "ALTER TABLE audit.events ") {
				continue
			}
			if strings.Contains(statement, " MATERIALIZED ") {
				continue // computed by the server
			}
			for _, m := range column.FindAllStringSubmatch(statement, -1) {
				columns = append(columns, m[1]+" "+m[2])
			}
		}
	}
	return columns
}

// TestOneRecord compares the record in Go and in ClickHouse with the table of
// its members.
func TestOneRecord(t *testing.T) {
	var filled []string
	for _, c := range columnsAt(time.Time{}) {
		filled = append(filled, c.name+" "+string(c.typ))
	}
	inOrder := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff(filled, created(t), inOrder); diff != "" {
		t.Errorf("columns of events; a new one needs a migration with ADD COLUMN IF NOT EXISTS (-audit.RecordMembers +migrations):\n%s", diff)
	}
	r := new(audit.Record)
	fields := map[uintptr]bool{}
	for _, m := range audit.RecordMembers() {
		if m.Field != nil {
			fields[reflect.ValueOf(m.Field).Call([]reflect.Value{reflect.ValueOf(r)})[0].Pointer()] = true
		}
	}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if !fields[v.Field(i).Addr().Pointer()] {
			t.Errorf("audit.RecordMembers has no member for audit.Record.%s", v.Type().Field(i).Name)
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
	for _, names := range []schemas.Names{{Database: "audit"},
		{Database: "audit", Cluster: schemas.Cluster{Name: "prod", ReplicaPath: "/p/{shard}/<table>", ReplicaName: "{replica}"}},
		{Database: "audit", Cluster: schemas.Cluster{Name: "prod", ReplicaPath: "/p/{shard}/<table>", ReplicaName: "{replica}", Distributed: true}},
	} {
		for _, statement := range schemas.Statements(all, names) {
			verb, _, _ := strings.Cut(statement, " ")
			if verb == "CREATE" && !strings.Contains(statement, "IF NOT EXISTS") && !strings.HasPrefix(statement, "CREATE OR REPLACE VIEW ") && !strings.Contains(statement, "ENGINE = Distributed") {
				t.Errorf("does not run twice: %s", statement)
			}
			if strings.Contains(statement, "${") {
				t.Errorf("a name is left open: %s", statement)
			}
			// An INSERT has no such clause: what it fills is replicated.
			cluster := names.Cluster.Name != ""
			if on := strings.Contains(statement, "ON CLUSTER prod"); on != cluster && verb != "INSERT" {
				t.Errorf("%+v: %s", names, statement)
			}
			stored := strings.Contains(statement, "ENGINE = ") && !strings.Contains(statement, "ENGINE = Null") && !strings.Contains(statement, "ENGINE = Distributed")
			if r := strings.Contains(statement, "ENGINE = Replicated"); stored && r != cluster {
				t.Errorf("%+v: %s", names, statement)
			}
		}
	}
}

// TestWords compares a column of words with what the driver's library makes of
// the same, at the numbers of words at which a key gets wider.
func TestWords(t *testing.T) {
	for _, words := range []int{0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537} {
		var rows []ingest.Row
		for i := range words {
			// Each word twice in a row, and the first one again in between.
			for _, n := range []int{i, i, 0} {
				rows = append(rows, ingest.Row{Source: ingest.Source{Topic: fmt.Sprint("t", n)}})
			}
		}
		var got, want proto.Buffer
		topic := func(r *ingest.Row) string { return r.Source.Topic }
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
