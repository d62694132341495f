package clickhouse_test

import (
	"strings"
	"testing"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TestInsertConnects has inserts make their connection themselves, as after a
// server was away, whether they are compressed or not.
func TestInsertConnects(t *testing.T) {
	dir := migrated(t)
	for i, uncompressed := range []bool{true, false} {
		s, err := clickhouse.Open(clickhouse.Config{
			Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: uncompressed,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.InsertRows(t.Context(), []ingest.Row{row(t, call(i+1, "send_keys"), uint64(i))}, start); err != nil {
			t.Errorf("uncompressed %t: %v", uncompressed, err)
		}
	}
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events", "2")
}

// TestInsertOfManyBlocks: what is sent as many blocks is one for the engine,
// stored as one part and taken once, however often it is sent.
func TestInsertOfManyBlocks(t *testing.T) {
	const n = 5000 // some ten blocks
	dir := migrated(t)
	s := open(t, dir)
	rows := make([]ingest.Row, n)
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
	chdbtest.Want(t, dir, "SELECT count(), uniqExact(kafka_offset) FROM audit.events SETTINGS final = 0", "5000\t5000")
	chdbtest.Want(t, dir, "SELECT sum(calls) FROM audit.hourly", "5000")
	// A part's name ends in the numbers of its first and last block and a level.
	chdbtest.Want(t, dir, "SELECT count(), min(name[2] = name[3]) FROM (SELECT DISTINCT splitByChar('_', _part) AS name FROM audit.events)", "1\t1")
}

// TestKeepFree inserts on a disk with less free space than what is to be left:
// records and dead letters wait, and nothing else does.
func TestKeepFree(t *testing.T) {
	dir := migrated(t)
	s, err := clickhouse.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true, KeepFree: 1 << 60,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.InsertRows(t.Context(), []ingest.Row{row(t, call(1, "send_keys"), 1)}, start)
	if err == nil || ingest.ClassOf(err) != ingest.Retry || !strings.Contains(err.Error(), "inserting 1 records: ") || !strings.HasSuffix(err.Error(), ": free space on its disk: a shorter retention.events does that after a day at the earliest") {
		t.Errorf("InsertRows = %v, class %v", err, ingest.ClassOf(err))
	}
	letter := func(b driver.Batch) error { return b.Append("a stranger's") }
	const statement = "INSERT INTO audit.dead_letters (raw)"
	if err := s.InsertKeepingFree(t.Context(), statement, []byte("1"), letter); err == nil {
		t.Error("InsertKeepingFree did not")
	}
	if err := s.Insert(t.Context(), statement, []byte("2"), letter); err != nil {
		t.Errorf("Insert = %v", err)
	}
}
