package proof_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/collector/store/storetest"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

func open(t *testing.T) (*clickhouse.DB, string) {
	t.Helper()
	s, dir := storetest.Open(t, clickhouse.Retention{})
	return s.DB(), dir
}

// A fixture stores rows.
type fixture struct {
	t      *testing.T
	db     *clickhouse.DB
	dir    string
	offset uint64
}

var at = time.Now().UTC().Truncate(time.Microsecond).Add(-time.Hour)

// row returns a record of a session, as it is stored.
func (f *fixture) row(session string, seq uint64, change ...func(*audit.Record)) ingest.Row {
	f.t.Helper()
	r := ingesttest.Call(int(seq), "list_panes", at)
	r.RecordID, r.SessionID, r.Host, r.User = fmt.Sprintf("%s%012x", session[:24], seq), session, "build-7", "ann"
	for _, c := range change {
		c(&r)
	}
	f.offset++
	return ingesttest.Row(f.t, r, ingest.Source{Topic: "t", Offset: f.offset})
}

// insert stores rows that arrive together. An insert costs the engine as much as ten
// questions, however many rows it has.
func (f *fixture) insert(arrived time.Time, rows ...ingest.Row) {
	f.t.Helper()
	if err := f.db.InsertRows(f.t.Context(), rows, arrived); err != nil {
		f.t.Fatal(err)
	}
}

// store stores a record of a session, and returns its line.
func (f *fixture) store(session string, seq uint64, arrived time.Time, change ...func(*audit.Record)) string {
	f.t.Helper()
	row := f.row(session, seq, change...)
	f.insert(arrived, row)
	return row.Raw
}

func (f *fixture) want(sql string, rows ...string) {
	f.t.Helper()
	chdbtest.Want(f.t, f.dir, sql, rows...)
}

func (f *fixture) exec(sql string) { chdbtest.Query(f.t, f.dir, sql) }

// read returns what there is of the selected sessions, one text for each row.
func (f *fixture) read(sel proof.Selection, sizes proof.Sizes) (rows []string) {
	f.t.Helper()
	src := proof.NewSource(f.db)
	src.Sizes = sizes
	err := src.Sessions(f.t.Context(), sel, func(list []proof.Session) error {
		return src.Read(f.t.Context(), list, func(r *proof.Row) error {
			text := fmt.Sprintf("%s %d %s", r.Session, r.Seq, r.Raw)
			if r.Raw == nil {
				text = fmt.Sprintf("%s %d leaf %v%s", r.Session, r.Seq, r.Leaf, r.Evidence)
			}
			for _, name := range r.Differs {
				text += " differs in " + name
			}
			if r.Unreadable != nil {
				text += " is no record"
			}
			rows = append(rows, text)
			return nil
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

func TestSource(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	a, b, c, d := audit.NewID(at), audit.NewID(at.Add(time.Minute)), audit.NewID(at.Add(time.Hour)), audit.NewID(at.Add(2*time.Hour))
	var want []string
	add := func(session string, seq int, text string) {
		want = append(want, fmt.Sprintf("%s %d %s", session, seq, text))
	}
	long := time.Now().Add(-48 * time.Hour)
	lines := map[string][]string{}
	var rows []ingest.Row
	for seq := range uint64(5) {
		for _, session := range []string{a, b} {
			rows = append(rows, f.row(session, seq))
			lines[session] = append(lines[session], rows[len(rows)-1].Raw)
		}
	}
	f.insert(long, rows...)
	f.store(a, 1, long.Add(time.Second)) // it came again
	second := f.store(a, 3, long, func(r *audit.Record) { r.Tool = "other" })
	leaf := evidence.Leaf([]byte("x"))
	for i, hash := range []evidence.Hash{leaf, {31: 0, 0: 1}} { // zeros at the end stay
		f.exec(fmt.Sprintf("INSERT INTO audit.leaves (tenant, session_id, seq, hash, evidence, kept_at) VALUES ('acme', '%s', %d, unhex('%x'), '{}', now())", b, 5+i, hash[:]))
		f.exec(fmt.Sprintf("INSERT INTO audit.leaves (tenant, session_id, seq, hash, kept_at) VALUES ('acme', '%s', %d, unhex('%x'), now())", d, i, hash[:]))
	}
	ofC := f.store(c, 0, time.Now())
	for seq, line := range lines[a] {
		add(a, seq, line)
		if seq == 3 {
			add(a, seq, second)
		}
	}
	for seq, line := range lines[b] {
		add(b, seq, line)
	}
	add(b, 5, "leaf "+leaf.String()+"{}")
	add(b, 6, "leaf "+evidence.Hash{0: 1}.String()+"{}")
	ofB := want[len(want)-7:]
	add(c, 0, ofC)
	add(d, 0, "leaf "+leaf.String())
	add(d, 1, "leaf "+evidence.Hash{0: 1}.String())

	for _, sizes := range []proof.Sizes{{}, {Rows: 1, Sessions: 1, Page: 1}, {Rows: 3, Sessions: 2, Page: 3}, {Rows: 2, Sessions: 9, Page: 2}} {
		got := f.read(proof.Selection{}, sizes)
		slices.SortStableFunc(got, strings.Compare) // versions of a number have no order
		got = slices.Compact(got)                   // a merge may have joined what came twice
		sorted := slices.Sorted(slices.Values(want))
		if diff := cmp.Diff(sorted, got); diff != "" {
			t.Errorf("in pieces of %+v (-want +got):\n%s", sizes, diff)
		}
	}
	// Of d, which started since, retention has removed the records.
	if diff := cmp.Diff(want[len(want)-3:], f.read(proof.Selection{Since: at.Add(30 * time.Minute)}, proof.Sizes{})); diff != "" {
		t.Errorf("since c began (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ofB, f.read(proof.Selection{ID: b}, proof.Sizes{})); diff != "" {
		t.Errorf("one session (-want +got):\n%s", diff)
	}

	f.exec(fmt.Sprintf("INSERT INTO audit.verifications (tenant, session_id, state, at, ingested) SELECT 'acme', session_id, 'ok', now(), max(last_ingested) FROM audit.session_states WHERE session_id IN ('%s', '%s') GROUP BY session_id", a, b))
	f.store(b, 7, time.Now())
	if got, err := proof.NewSource(db).Due(t.Context(), time.Now()); err != nil || !slices.Equal(got, []string{b, c}) {
		t.Errorf("due are %q, %v, want b and c", got, err)
	}

	f.exec("ALTER TABLE audit.events UPDATE outcome = 'ok', args = '{}', user = 'eve' WHERE session_id = '" + c + "' SETTINGS mutations_sync = 2")
	if got := f.read(proof.Selection{ID: c}, proof.Sizes{}); len(got) != 1 || got[0] != fmt.Sprintf("%s 0 %s differs in args differs in user", c, ofC) {
		t.Errorf("with edited columns: %q", got)
	}
	f.exec("ALTER TABLE audit.events UPDATE raw = 'x' WHERE session_id = '" + c + "' SETTINGS mutations_sync = 2")
	if got := f.read(proof.Selection{ID: c}, proof.Sizes{}); len(got) != 1 || got[0] != c+" 0 x is no record" {
		t.Errorf("with other bytes: %q", got)
	}

	f.exec("INSERT INTO audit.erasures (erasure_id, at, kind, value, who, done_at) VALUES ('0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', now(), 'session', 'x', 'eve', now())")
	f.exec("INSERT INTO audit.erased_sessions (session_id, erasure_id, at) VALUES ('" + d + "', '0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', '2026-11-20 09:00:00')")
	erased, err := proof.NewSource(db).Erasures(t.Context())
	if err != nil || len(erased) != 1 || erased[d].Who != "eve" || !erased[d].At.Equal(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("Erasures = %+v, %v", erased, err)
	}
}

// TestDue has sessions of any length that got records since they were verified.
func TestDue(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	tests := []struct {
		what           string
		last, verified int           // number of the last record, and how many were verified
		ended          int           // 1: yes
		silent, ago    time.Duration // since the last record, and since the verification
		want           bool
	}{
		{"short", 9_999, 9_998, 0, 0, 11 * time.Minute, true},
		{"long", 14_998, 10_000, 0, 0, 11 * time.Minute, false},
		{"and verified never", 4_000_000, 0, 0, 0, 0, true},
		{"and grown by half", 15_000, 10_000, 0, 0, 11 * time.Minute, true},
		{"and ended", 12_000, 11_999, 1, 0, 11 * time.Minute, true},
		{"and silent", 12_000, 11_999, 0, 61 * time.Minute, 2 * time.Hour, true},
		{"and not silent for long", 12_000, 11_999, 0, 59 * time.Minute, 2 * time.Hour, false},
		{"and verified yesterday", 12_000, 11_999, 0, 0, 25 * time.Hour, true},
		{"with nothing new", 12_000, 11_999, 1, 26 * time.Hour, 25 * time.Hour, false},
	}
	var records []ingest.Row
	var states, verified []string
	ids := make([]string, len(tests))
	for i, test := range tests {
		ids[i] = audit.NewID(now)
		records = append(records, f.row(ids[i], 0))
		states = append(states, fmt.Sprintf("('acme', '%s', fromUnixTimestamp64Milli(%d, 'UTC'), %d, %d)", ids[i], now.Add(-test.silent).UnixMilli(), test.last, test.ended))
		if test.verified > 0 {
			verified = append(verified, fmt.Sprintf("('acme', '%s', 'ok', fromUnixTimestamp64Milli(%[2]d, 'UTC'), fromUnixTimestamp64Milli(%[2]d, 'UTC'), %[3]d)", ids[i], now.Add(-test.ago).UnixMilli(), test.verified))
		}
	}
	f.insert(now.Add(-48*time.Hour), records...)
	f.exec("INSERT INTO audit.session_states (tenant, session_id, last_ingested, max_seq, ended) VALUES " + strings.Join(states, ", "))
	f.exec("INSERT INTO audit.verifications (tenant, session_id, state, at, ingested, records) VALUES " + strings.Join(verified, ", "))
	due, err := proof.NewSource(db).Due(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range tests {
		if got := slices.Contains(due, ids[i]); got != test.want {
			t.Errorf("%s: due = %v, want %v", test.what, got, test.want)
		}
	}
}

// TestLongSession reads a session of many pages: ClickHouse reads each record a few
// times, not once for each page before it. Two records come late, one of them where
// whole pages are missing: they are looked for.
func TestLongSession(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	const records, width = 120_000, 4999 // of a part, for pages of one more
	const holeFrom, holeTo = 16 * width, 18 * width
	late := []uint64{60_000, 85_000}
	id := audit.NewID(at)
	var rows []ingest.Row
	for i := range records {
		r := ingesttest.Call(i, "send_keys", at.Add(time.Duration(i)*time.Millisecond))
		r.RecordID, r.SessionID = fmt.Sprintf("%s%012x", id[:24], i), id
		if uint64(i) != late[0] && (i < holeFrom || i >= holeTo) {
			rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: id, Offset: uint64(i)}))
		}
	}
	for len(rows) > 0 {
		n := min(len(rows), 10_000)
		if err := db.InsertRows(t.Context(), rows[:n], at); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
	src := proof.NewSource(db)
	src.Sizes.Rows = width + 1
	read := func() (n int) {
		err := src.Sessions(t.Context(), proof.Selection{}, func(list []proof.Session) error {
			return src.Read(t.Context(), list, func(r *proof.Row) error {
				if n == 0 {
					for _, seq := range late {
						f.store(id, seq, time.Now(), func(r *audit.Record) { r.TS = at.Add(45 * time.Second) })
					}
				}
				n++
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := f.selected()
	if n, want := read(), records-(holeTo-holeFrom)+1; n != want {
		t.Errorf("%d records were read, want %d", n, want)
	}
	// Each granule has 8192 rows, and each page some in two: the first page alone read
	// every row before.
	if n := f.selected() - before; n > 9*records {
		t.Errorf("ClickHouse read %d rows for %d records", n, records)
	}
}

// selected is how many rows ClickHouse has read.
func (f *fixture) selected() int {
	f.t.Helper()
	n, err := strconv.Atoi(strings.Join(chdbtest.Query(f.t, f.dir, "SELECT value FROM system.events WHERE event = 'SelectedRows'"), " "))
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestSomeOfManySessions looks for sessions that began one after another: what began
// long before and after them is not read.
func TestSomeOfManySessions(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	const sessions, records = 1000, 100 // of each
	began := at.Add(-sessions * time.Hour)
	var ids []string
	for hour := 0; hour < sessions; hour += 100 { // an insert
		for i := range 100 {
			ids = append(ids, audit.NewID(began.Add(time.Duration(hour+i)*time.Hour)))
		}
		f.exec(fmt.Sprintf(`INSERT INTO audit.events (v, kind, record_id, session_id, seq, ts, method, tool, raw, payload_hash, kafka_topic, kafka_offset, ingested_at)
SELECT 1, 'call', generateUUIDv4(number), ['%[1]s'][intDiv(number, %[2]d) + 1], number %% %[2]d, fromUnixTimestamp64Milli(toInt64(%[3]d + number * intDiv(3600000, %[2]d)), 'UTC'),
    'tools/call', 'list_panes', toString(number), substring(SHA256(toString(%[3]d + number)), 1, 16), 't', number, fromUnixTimestamp64Milli(%[4]d, 'UTC') FROM numbers(100 * %[2]d)`,
			strings.Join(ids[hour:], "', '"), records, began.Add(time.Duration(hour)*time.Hour).UnixMilli(), at.UnixMilli()))
	}
	some := ids[400:600]
	before, found, rows := f.selected(), 0, uint64(0)
	err := proof.NewSource(db).Sessions(t.Context(), proof.Selection{IDs: some}, func(list []proof.Session) error {
		for _, one := range list {
			found++
			rows += one.Rows
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(some) || rows != uint64(len(some)*records) {
		t.Errorf("%d sessions of %d records, want %d of %d", found, rows, len(some), len(some)*records)
	}
	// A granule has 8192 rows, and at each end some are of others.
	if n := f.selected() - before; n > len(some)*records+sessions+3*8192 {
		t.Errorf("ClickHouse read %d rows for %d records of %d", n, rows, sessions*records)
	}

	// All of them in ten pages: each reads its own records, not those of all later pages.
	f.exec("TRUNCATE TABLE audit.session_states") // it may lack some
	f.exec("INSERT INTO audit.session_states (session_id, last_ingested) SELECT DISTINCT session_id, now() FROM audit.events WHERE cityHash64(session_id) % 10 != 0")
	src := proof.NewSource(db)
	src.Sizes.Page = 100
	seen := map[string]bool{}
	before, rows = f.selected(), 0
	err = src.Sessions(t.Context(), proof.Selection{}, func(list []proof.Session) error {
		if len(list) > 100 {
			t.Errorf("a page of %d sessions", len(list))
		}
		for _, one := range list {
			seen[one.ID] = true
			rows += one.Rows
		}
		return nil
	})
	if err != nil || len(seen) != sessions || rows != sessions*records {
		t.Errorf("%d sessions of %d records, %v, want %d of %d", len(seen), rows, err, sessions, sessions*records)
	}
	if n := f.selected() - before; n > 4*sessions*records {
		t.Errorf("ClickHouse read %d rows for %d records in pages", n, rows)
	}
}

// TestMany reads as many records as the variable RECORDS says, or some pages of them,
// and prints the time that it takes.
func TestMany(t *testing.T) {
	records := 7000
	if text := os.Getenv("RECORDS"); text != "" {
		var err error
		if records, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	db, _ := open(t)
	for left := records; left > 0; {
		id := audit.NewID(time.Now())
		n := min(left, 3000)
		left -= n
		var rows []ingest.Row
		for i := range n {
			r := ingesttest.Call(i, "send_keys", time.Now().UTC().Truncate(time.Microsecond))
			r.SessionID, r.Args, r.Host, r.User, r.Annotations = id, audit.JSON(fmt.Sprintf(`{"keys":{"len":46,"hmac":"%x"},"cwd":"%s"}`, i*7919, strings.Repeat("/srv/build", 30))), "build-7", "agent", `{"readOnlyHint":false,"destructiveHint":true}`
			rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: id, Offset: uint64(i)}))
		}
		// The engine of tests has little memory, and merges take some of it.
		for at, err := time.Now(), error(nil); ; {
			if err = db.InsertRows(t.Context(), rows, at); err == nil {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
		}
	}
	src := proof.NewSource(db)
	start, n := time.Now(), 0
	err := src.Sessions(t.Context(), proof.Selection{}, func(list []proof.Session) error {
		return src.Read(t.Context(), list, func(r *proof.Row) error {
			n++
			if len(r.Differs) > 0 {
				t.Fatalf("row %s %d differs %q", r.Session, r.Seq, r.Differs)
			}
			return nil
		})
	})
	if err != nil || n != records {
		t.Errorf("read %d records, %v", n, err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("read", n, "records in", time.Since(start), "heap", m.HeapSys>>20, "MiB")
}
