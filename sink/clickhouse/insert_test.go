package clickhouse_test

import (
	"testing"

	"auditproxy/sink"
)

// TestInsertOfManyBlocks: what is sent as many blocks is one for the engine,
// stored as one part and taken once, however often it is sent.
func TestInsertOfManyBlocks(t *testing.T) {
	const n = 5000 // some ten blocks
	dir := startEngine(t)
	s := open(t, dir)
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	rows := make([]sink.Row, n)
	for i := range rows {
		r := call(i+1, "send_keys")
		r.TS = start // one month, and so one partition
		rows[i] = row(t, r, uint64(i))
	}
	for range 3 { // as after lost answers
		if err := s.InsertRows(t.Context(), rows, start); err != nil {
			t.Fatal(err)
		}
	}
	want(t, dir, "SELECT count(), uniqExact(kafka_offset) FROM audit.events SETTINGS final = 0", "5000\t5000")
	want(t, dir, "SELECT sum(calls) FROM audit.hourly", "5000")
	// A part's name ends in the numbers of its first and last block and a level.
	want(t, dir, "SELECT count(), min(name[2] = name[3]) FROM (SELECT DISTINCT splitByChar('_', _part) AS name FROM audit.events)", "1\t1")
}
