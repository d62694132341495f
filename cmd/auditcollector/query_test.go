package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"
)

func TestQuery(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	const all = `SELECT 1 AS a, 'x\n' || char(27) || unhex('E280AE') || '漢,"' AS b, toDateTime64('2026-11-21 10:00:00.5', 6, 'UTC') AS t, toDate('2026-01-02') AS d, NULL AS n,
		[toNullable(1), NULL] AS l, map('k', 1.5) AS m, CAST((1, 'y'), 'Tuple(p UInt8, q String)') AS tu, toUUID('01a1ffa2-ef06-7531-984c-e556a3c10f58') AS u,
		nan AS f, toFixedString('\xff\x01', 2) AS fs, toUInt64(18446744073709551615) AS big, true AS ok, toNullable(toUInt8(3)) AS nn`
	const within = `SELECT [unhex('ff')] AS b, map(unhex('fe'), 'a') AS k, [toDate('2026-01-02')] AS d, (toDate('2026-01-02'), toDateTime('2026-01-02 03:04:05', 'UTC'), 1) AS tu,
		CAST((toDate('2026-01-02'), [toDateTime64('2026-01-02 03:04:05', 3, 'UTC')]), 'Tuple(a Nullable(Date), bc Array(DateTime64(3, \'UTC\')))') AS named, map(toDate('2026-01-02'), toNullable(toDate('2026-01-03'))) AS m,
		map(nan, 1, -inf, 2) AS f, [toLowCardinality('x,y(')] AS lc, [CAST('a,(', 'Enum8(\'a,(\' = 1)')] AS e, CAST(toDate('2026-01-02'), 'Variant(Date, String)') AS v, CAST(NULL, 'Variant(Date, String)') AS vn`
	for _, tt := range []struct {
		name string
		args []string
		want result
	}{
		{"a table", []string{"SELECT number AS n, repeat('漢', number) AS wide, 'x' AS last FROM numbers(3)"}, result{stdout: "n  wide  last\n0        x\n1  漢    x\n2  漢漢  x\n"}},
		{"all types as JSON", []string{"--format", "json", all}, result{
			stdout: `{"a":1,"b":"x\n\u001b\u202e漢,\"","t":"2026-11-21T10:00:00.500000Z","d":"2026-01-02","n":null,"l":[1,null],"m":{"k":1.5},"tu":{"p":1,"q":"y"},"u":"01a1ffa2-ef06-7531-984c-e556a3c10f58","f":null,"fs":"\\xff\\x01","big":18446744073709551615,"ok":true,"nn":3}` + "\n"}},
		{"all types as CSV", []string{"--format=csv", all}, result{
			stdout: "a,b,t,d,n,l,m,tu,u,f,fs,big,ok,nn\n1,\"x\n\x1b\u202e漢,\"\"\",2026-11-21T10:00:00.500000Z,2026-01-02,,\"[1,null]\",\"{\"\"k\"\":1.5}\",\"{\"\"p\"\":1,\"\"q\"\":\"\"y\"\"}\",01a1ffa2-ef06-7531-984c-e556a3c10f58,,\xff\x01,18446744073709551615,true,3\n"}},
		{"values in others", []string{"--format", "json", within}, result{
			stdout: `{"b":["\\xff"],"k":{"\\xfe":"a"},"d":["2026-01-02"],"tu":["2026-01-02","2026-01-02T03:04:05Z",1],"named":{"a":"2026-01-02","bc":["2026-01-02T03:04:05.000Z"]},"m":{"2026-01-02":"2026-01-03"},"f":{"-inf":2,"nan":1},"lc":["x,y("],"e":["a,("],"v":"2026-01-02","vn":null}` + "\n"}},
		{"a type that cannot be printed", []string{"--json", `SELECT [CAST('{"a":1}', 'JSON')] AS j`}, result{code: cli.ExitUnclear, stderr: "auditcollector: printing column \"j\": type JSON is not supported: convert it with toString\n"}},
		{"and its text", []string{"--format", "json", `SELECT toString(CAST('{"a":1}', 'JSON')) AS j`}, result{stdout: `{"j":"{\"a\":1}"}` + "\n"}},
		{"the records' database", []string{"SELECT count() AS n FROM events"}, result{stdout: "n\n0\n"}},
		{"no rows", []string{"--format", "json", "SELECT * FROM events"}, result{}},
		{"wrong SQL", []string{"SELECT * FROM nowhere"}, result{code: cli.ExitUnclear, stderr: "auditcollector: ClickHouse answers: Unknown table expression identifier 'nowhere' in scope SELECT * FROM nowhere. (UNKNOWN_TABLE)\n"}},
		{"no SQL", []string{"SELECT 1 FROM"}, result{code: cli.ExitUnclear, stderr: "auditcollector: ClickHouse answers: Syntax error: failed at position 14 (end of query)"}},
		{"an error after rows", []string{"SELECT throwIf(number = 900000) AS z FROM numbers(1000000)"}, result{code: cli.ExitUnclear, stdout: "z\n0\n0\n", stderr: "auditcollector: ClickHouse answers: Value passed to 'throwIf'"}},
		{"writing", []string{"INSERT INTO events (tool) VALUES ('x')"}, result{code: cli.ExitUnclear, stderr: "auditcollector: ClickHouse answers: a reader may only read. (READONLY)\n"}},
		{"a file", []string{"SELECT file('/etc/hosts')"}, result{code: cli.ExitUnclear, stderr: "auditcollector: ClickHouse answers: a reader may not call file: it reads files of this machine. (READONLY)\n"}},
		{"a format of its own", []string{"SELECT 1 FORMAT JSON;"}, result{code: cli.ExitUnclear, stderr: "auditcollector: the statement names a FORMAT of its own; use --format table, json or csv\n"}},
		{"a format that is none", []string{"--format", "xml", "SELECT 1"}, result{code: cli.ExitUnclear, stderr: "auditcollector: --format is \"xml\", want table, json or csv\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := h.run(t, append([]string{"query"}, tt.args...)...)
			if got.code != tt.want.code || !said(got.stdout, tt.want.stdout) || !said(got.stderr, tt.want.stderr) {
				t.Errorf("got %d\n%.500q\n%.500q\nwant %d\n%q\n%q", got.code, got.stdout, got.stderr, tt.want.code, tt.want.stdout, tt.want.stderr)
			}
		})
	}
	documented := 0
	for _, page := range documents(t) {
		for _, m := range regexp.MustCompile("auditcollector query (?:--format json )?(?:'([^']+)'|\"([^\"]+)\")").FindAllStringSubmatch(page, -1) {
			documented++
			if got := h.run(t, "query", m[1]+m[2]); got.code != 0 {
				t.Errorf("%s\n%s", m[0], got.stderr)
			}
		}
	}
	if documented < 7 {
		t.Errorf("found %d statements in the documentation, want at least 7", documented)
	}
}

// documents returns the texts of README.md and docs.
func documents(t *testing.T) (texts []string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// said reports whether got is want, or begins with it if want has no end.
func said(got, want string) bool {
	if want == "" || strings.HasSuffix(want, "\n") && strings.Count(got, "\n") < 1000 {
		return got == want
	}
	return strings.HasPrefix(got, want)
}

func TestQueryNeedsACollector(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	got := h.run(t, "query", "SELECT 1")
	want := fmt.Sprintf("auditcollector: no collector with a local engine is running in %q: start auditcollector run, or set clickhouse.addr\n", h.dir+"/local")
	if got.code != cli.ExitUnclear || got.stderr != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// TestNoStore checks that commands about stored records make no store where there is
// none, as for root on a machine whose collector is a user's.
func TestNoStore(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	for _, args := range [][]string{{"dead-letters", "list"}, {"receivers"}, {"hold", "list"}, {"retain", "--dry-run"}, {"verify"}} {
		got := h.run(t, args...)
		if want := fmt.Sprintf("auditcollector: there are no records in local.dir %q: ", h.dir+"/local"); got.code != cli.ExitUnclear || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if _, err := os.Stat(h.dir + "/local"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store was made: %v", err)
	}
}

func TestEngineNeedsALibrary(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	got := h.run(t, "engine", "--local-library", h.dir+"/none.so")
	want := fmt.Sprintf("auditcollector: no libchdb where local.library says: stat %s/none.so: no such file or directory\n", h.dir)
	if got.code != cli.ExitConfig || got.stderr != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}
