package chdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// TestKilledInInsert kills the engine while batches are on their way, again
// and again, and sends what was not acknowledged once more.
func TestKilledInInsert(t *testing.T) {
	const (
		rounds = 6
		rows   = 3000
	)
	dir := shortDir(t)
	next := 0 // the first batch that is not acknowledged
	for round := range rounds {
		e := startEngine(t, dir)
		db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
		events(t, db)
		// The batch in doubt goes again, with the token that it had.
		first := next
		var killing sync.WaitGroup
		for {
			if next == first+2 { // the kill falls into one of the batches after this
				killing.Go(func() {
					<-time.After(time.Duration(round*7) * time.Millisecond)
					e.kill()
				})
			}
			if err := insert(t, db, next*rows, (next+1)*rows, fmt.Sprint("batch", next)); err != nil {
				break
			}
			next++
		}
		killing.Wait()
		db.Close()
	}
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	if err := insert(t, db, next*rows, (next+1)*rows, fmt.Sprint("batch", next)); err != nil {
		t.Fatal(err)
	}
	want := uint64((next + 1) * rows)
	if got := count(t, db, "SELECT uniqExact(id) FROM audit.events"); got != want {
		t.Errorf("%d records, want %d", got, want)
	}
	if got := count(t, db, "SELECT count() FROM audit.events FINAL"); got != want {
		t.Errorf("%d rows with FINAL, want %d", got, want)
	}
	if got := count(t, db, "SELECT count() FROM system.detached_parts"); got != 0 {
		t.Errorf("%d parts were detached", got)
	}
}

// TestCancel ends clients in the middle of what they asked for.
func TestCancel(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	for _, sql := range []string{
		"SELECT count() FROM numbers_mt(1000000000000) WHERE sipHash64(number) = 1", // no answer yet
		"SELECT number FROM system.numbers",                                         // in mid-answer
		"CREATE TABLE audit.slow ENGINE = Memory AS SELECT sleepEachRow(0.1) FROM numbers(100000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0",
	} {
		t.Run(sql, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			asked := make(chan error, 1)
			go func() { asked <- ask(ctx, dir, sql) }()
			running(t, dir, 1)
			cancel()
			if err := <-asked; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			running(t, dir, 0)
		})
	}
	t.Run("insert", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		data, feed := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/?query=INSERT+INTO+audit.events+(id)+FORMAT+TSV", data)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: transport(dir, chdb.Writer)}
		defer client.CloseIdleConnections()
		sent := make(chan error, 1)
		go func() {
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			sent <- err
		}()
		if _, err := io.WriteString(feed, strings.Repeat("1\n", 1<<20)); err != nil {
			t.Fatal(err)
		}
		cancel()
		feed.CloseWithError(context.Canceled) // net/http may wait for a read of the body
		if err := <-sent; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		running(t, dir, 0)
		if got := count(t, db, "SELECT count() FROM audit.events"); got != 0 {
			t.Errorf("an insert whose client went left %d rows", got)
		}
	})
}

// TestStopWhileReading stops the engine while statements run that take longer than it
// waits: no client may take what it has until then for the whole.
func TestStopWhileReading(t *testing.T) {
	dir := shortDir(t)
	e := startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 1, "function_sleep_max_microseconds_per_block": 0}))
	ended := make(chan error)
	go func() {
		rows, err := db.Query(ctx, "SELECT number, sleepEachRow(0.01) FROM numbers(100000)")
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
		}
		ended <- err
	}()
	go func() {
		ended <- db.Exec(ctx, "INSERT INTO audit.events (id) SELECT number + sleepEachRow(0.01) FROM numbers(100000)")
	}()
	running(t, dir, 2)
	e.stdin.Close()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a statement that the engine ended has no error")
		}
	}
}

// TestKillQuery asks for the end of another's statement: its client would not see that
// rows are missing.
func TestKillQuery(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	for _, sql := range []string{"KILL QUERY WHERE 1", "\n kill\tquery WHERE 1 SYNC", "-- all\nKILL QUERY WHERE 1", "/* all */ KILL QUERY WHERE 1"} {
		if r := post(t, dir, chdb.Writer, "", sql); r.status != http.StatusBadRequest || !strings.Contains(r.body, "end its client instead") {
			t.Errorf("%q: %d %s", sql, r.status, r.body)
		}
	}
	if r := post(t, dir, chdb.Writer, "", "KILL MUTATION WHERE table = 'query'"); r.status != http.StatusOK {
		t.Errorf("a mutation: %d %s", r.status, r.body)
	}
}

// ask reads an answer until it ends.
func ask(ctx context.Context, dir, sql string) error {
	client := http.Client{Transport: transport(dir, chdb.Writer)}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/", strings.NewReader(sql))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// running waits until so many statements run beside the one that counts them.
func running(t *testing.T, dir string, want int) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		r := post(t, dir, chdb.Writer, "", "SELECT count() FROM system.processes WHERE query NOT LIKE '%system.processes%'")
		if r.body == fmt.Sprint(want, "\n") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s statements run, want %d", strings.TrimSpace(r.body), want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestBigAnswer reads 600 MB, of which the engine's process may hold little. It
// does not decode them: with the race detector that would take longer than a
// reader's statement may. On a machine with much else to do even this can: then it
// reads them again.
func TestBigAnswer(t *testing.T) {
	const (
		row  = 8 + 2 + 1000 // bytes: a number, a length, a text
		rows = 600_000
		part = 20_000 * row
	)
	dir := shortDir(t)
	e := startEngine(t, dir)
	events(t, open(t, dir, chdb.Writer, clickhouse.CompressionNone))
	client := http.Client{Transport: transport(dir, chdb.Reader)}
	defer client.CloseIdleConnections()
	before := resident(t, e.cmd.Process.Pid)
	n, most := int64(0), uint64(0)
	var end bytes.Buffer
	for range 10 {
		resp, err := client.Post("http://engine/?max_block_size=8192", "text/plain", strings.NewReader(fmt.Sprintf("SELECT number, repeat('x', 1000) AS s FROM numbers(%d) FORMAT RowBinary", rows)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("status %d: %s", resp.StatusCode, text)
		}
		for n = 0; err == nil; {
			var read int64
			end.Reset()
			read, err = io.CopyN(&end, resp.Body, part)
			n += read
			most = max(most, resident(t, e.cmd.Process.Pid))
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		if !strings.Contains(end.String(), "(TIMEOUT_EXCEEDED)") {
			break
		}
	}
	if n != rows*row {
		t.Fatalf("%d bytes, want %d, at their end %q", n, rows*row, end.Bytes()[max(0, end.Len()-200):])
	}
	if grown := (int64(most) - int64(before)) >> 20; grown > 300 {
		t.Errorf("the engine grew by %d MiB", grown)
	}
}

// resident returns the memory of a process, in bytes.
func resident(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

// TestLimits holds a reader's statement to its time and memory.
func TestLimits(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	events(t, open(t, dir, chdb.Writer, clickhouse.CompressionNone))
	for _, tt := range []struct{ query, sql, code string }{
		{"max_execution_time=1", "SELECT count() FROM numbers_mt(1000000000000) WHERE sipHash64(number) = 1", "159"},
		{"", "SELECT uniqExact(number) FROM numbers_mt(1000000000)", "241"},
	} {
		r := post(t, dir, chdb.Reader, tt.query, tt.sql)
		if got := r.header.Get("X-ClickHouse-Exception-Code"); got != tt.code {
			t.Errorf("%s: status %d, code %s, %s, want code %s", tt.sql, r.status, got, r.body, tt.code)
		}
	}
}

// TestTogether has readers and writers at work at once, more than may run.
func TestTogether(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	w, r := open(t, dir, chdb.Writer, clickhouse.CompressionLZ4), open(t, dir, chdb.Reader, clickhouse.CompressionLZ4)
	events(t, w)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 10 {
				n := i*10 + j
				if err := insert(t, w, n*100, (n+1)*100, fmt.Sprint(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 32 {
		all.Go(func() {
			for range 5 {
				var rows, bad uint64
				if err := r.QueryRow(t.Context(), "SELECT count(), countIf(args NOT LIKE '{%}') FROM audit.events").Scan(&rows, &bad); err != nil || rows%100 != 0 || bad != 0 {
					t.Errorf("reader %d: %d rows, %d of them wrong, %v", i, rows, bad, err)
				}
				if err := drain(t, r, "SELECT throwIf(number = 70000) FROM numbers(100000)"); err == nil {
					t.Error("no error")
				}
			}
		})
	}
	all.Wait()
	if got := count(t, r, "SELECT count() FROM audit.events"); got != 4000 {
		t.Errorf("%d rows, want 4000", got)
	}
}

func TestInUse(t *testing.T) {
	dir := shortDir(t)
	e := startEngine(t, dir)
	second := engineCommand(t, dir)
	var said strings.Builder
	second.Stderr = &said
	stdin, err := second.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var exit *exec.ExitError
	if err := second.Run(); !errors.As(err, &exit) || exit.ExitCode() != chdb.ExitInUse {
		t.Errorf("the second engine ended with %v", err)
	}
	if want := fmt.Sprintf("directory %q is in use by process %d\n", dir, e.cmd.Process.Pid); said.String() != want {
		t.Errorf("it said %q, want %q", &said, want)
	}
}

// TestStrangersDirectory starts the engine where somebody has left a
// configuration for it.
func TestStrangersDirectory(t *testing.T) {
	dir, elsewhere := shortDir(t), t.TempDir()
	for name, text := range map[string]string{
		"config.xml": "<clickhouse><users_config>" + elsewhere + "/users.xml</users_config></clickhouse>",
		"users.xml": `<clickhouse><profiles><default><max_insert_threads>7</max_insert_threads></default></profiles><quotas><default/></quotas>
			<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile></default></users></clickhouse>`,
	} {
		if err := os.WriteFile(filepath.Join(elsewhere, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := engineCommand(t, dir)
	cmd.Dir = elsewhere
	run(t, dir, cmd)
	if r := post(t, dir, chdb.Writer, "", "SELECT getSetting('max_insert_threads')"); r.body != "0\n" {
		t.Errorf("max_insert_threads = %q, want the engine's own 0", r.body)
	}
}

// TestEndsWithParent closes the engine's standard input, as the end of its
// parent does.
func TestEndsWithParent(t *testing.T) {
	e := startEngine(t, shortDir(t))
	e.stdin.Close()
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("the engine ended with %v", err)
	}
	if _, err := os.Stat(e.dir + "/writer.sock"); err == nil {
		t.Error("it left a socket")
	}
}
