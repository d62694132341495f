package schemas_test

import (
	"regexp"
	"testing"

	"auditproxy/schemas"
)

// lastUnbounded is the last migration that may read all records: of a large
// store it takes hours, in which the collector stores nothing.
const lastUnbounded = 6

// reads matches statements whose time grows with what is stored.
var reads = regexp.MustCompile(`(?is)^INSERT\b.*\bSELECT\b|\bPOPULATE\b|\bMATERIALIZE (COLUMN|INDEX|PROJECTION|TTL)\b|^OPTIMIZE\b|^ALTER\b.*\b(UPDATE|DELETE)\b.*\bWHERE\b|\bMODIFY (ORDER BY|TTL)\b|^CREATE TABLE\b.*\bAS SELECT\b`)

// TestMigrationsAreBounded: a migration changes tables and views, and fills none
// from what is stored. A new state begins with the records that arrive from then
// on, and who reads it knows what it does about those from before; a job that
// fills it does so in steps from a mark, while records arrive.
func TestMigrationsAreBounded(t *testing.T) {
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range list {
		for _, sql := range schemas.Statements(m.SQL, schemas.Names{Database: "audit"}) {
			switch {
			case !reads.MatchString(sql):
			case m.Number <= lastUnbounded:
				found++
			default:
				t.Errorf("migration %d %q reads all that is stored: %.100s", m.Number, m.Name, sql)
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d statements in the migrations up to %d, want the 2 that are there", found, lastUnbounded)
	}
}
