package grafana

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// An expansion makes SQL of a panel's text, as Grafana and its plugin for
// ClickHouse do (grafana-clickhouse-datasource 4, its macros.go and
// CHDatasource.ts).
type expansion struct {
	from, to time.Time
	interval time.Duration
	values   map[string][]string // of variables; All without any
}

// all is the value of a variable for which All is chosen.
const all = "$__all"

var reference = regexp.MustCompile(`\$\{(\w+)(?::(\w+))?\}`)

func (e expansion) sql(t *testing.T, text string) string {
	t.Helper()
	text = e.conditions(t, text)
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		values, ok := e.values[parts[1]]
		if !ok || slices.Contains(values, all) {
			t.Errorf("%s: there is no such variable, or all of it is chosen", found)
		}
		if parts[2] != "sqlstring" {
			t.Errorf("%s is not quoted", found)
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
		}
		return strings.Join(quoted, ",")
	})
	return e.macros(t, text)
}

// conditions replaces $__conditionalAll(condition, $variable).
func (e expansion) conditions(t *testing.T, text string) string {
	const macro = "$__conditionalAll"
	for {
		at := strings.LastIndex(text, macro+"(")
		if at < 0 {
			return text
		}
		args, end := arguments(text, at+len(macro))
		if len(args) != 2 {
			t.Fatalf("%q: want a condition and a variable", args)
		}
		values, ok := e.values[strings.TrimPrefix(strings.TrimSpace(args[1]), "$")]
		if !ok {
			t.Fatalf("%q: there is no such variable", args)
		}
		condition := args[0]
		if slices.Equal(values, []string{all}) {
			condition = "1=1"
		}
		text = text[:at] + condition + text[end:]
	}
}

// arguments returns the text in the parentheses at text[at], split at the commas
// that are in no inner ones, and where the parentheses end.
func arguments(text string, at int) (args []string, end int) {
	depth, from := 0, at+1
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 || depth == 1 && text[i] == ',' {
			args = append(args, text[from:i])
			from = i + 1
		}
		if depth == 0 {
			return args, i + 1
		}
	}
	return nil, len(text)
}

var macroName = regexp.MustCompile(`\$__(\w+)`)

// macros replaces the plugin's own macros.
func (e expansion) macros(t *testing.T, text string) string {
	for {
		found := macroName.FindStringSubmatchIndex(text)
		if found == nil {
			return text
		}
		name, end := text[found[2]:found[3]], found[1]
		var args []string
		if end < len(text) && text[end] == '(' {
			args, end = arguments(text, end)
		}
		sql, ok := e.macro(name, args)
		if !ok {
			t.Fatalf("%s: the plugin has no macro $__%s with %d arguments", text, name, len(args))
		}
		text = text[:found[0]] + sql + text[end:]
	}
}

func (e expansion) macro(name string, args []string) (sql string, ok bool) {
	seconds := func(at time.Time) string { return fmt.Sprintf("toDateTime(%d)", at.Unix()) }
	millis := func(at time.Time) string { return fmt.Sprintf("fromUnixTimestamp64Milli(%d)", at.UnixMilli()) }
	date := func(at time.Time) string { return "toDate('" + at.Format(time.DateOnly) + "')" }
	within := func(column string, write func(time.Time) string) string {
		return column + " >= " + write(e.from) + " AND " + column + " <= " + write(e.to)
	}
	step := max(1, int(e.interval.Seconds()))
	switch {
	case name == "fromTime" && len(args) == 0:
		return seconds(e.from), true
	case name == "toTime" && len(args) == 0:
		return seconds(e.to), true
	case name == "fromTime_ms" && len(args) == 0:
		return millis(e.from), true
	case name == "toTime_ms" && len(args) == 0:
		return millis(e.to), true
	case name == "interval_s" && len(args) == 0:
		return fmt.Sprint(step), true
	case name == "timeFilter" && len(args) == 1:
		return within(args[0], seconds), true
	case name == "timeFilter_ms" && len(args) == 1:
		return within(args[0], millis), true
	case name == "dateFilter" && len(args) == 1:
		return within(args[0], date), true
	case (name == "dateTimeFilter" || name == "dt") && len(args) == 2:
		return "(" + within(args[0], date) + ") AND (" + within(args[1], seconds) + ")", true
	case name == "timeInterval" && len(args) == 1:
		return fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL %d second)", args[0], step), true
	case name == "timeInterval_ms" && len(args) == 1:
		return fmt.Sprintf("toStartOfInterval(toDateTime64(%s, 3), INTERVAL %d millisecond)", args[0], max(1, e.interval.Milliseconds())), true
	}
	return "", false
}

func TestExpand(t *testing.T) {
	e := expansion{
		from: time.Unix(1000, 0), to: time.Unix(2000, 0), interval: 90 * time.Second,
		values: map[string][]string{"host": {all}, "tool": {"a", "it's"}},
	}
	for in, want := range map[string]string{
		"$__timeFilter(ts)":    "ts >= toDateTime(1000) AND ts <= toDateTime(2000)",
		"f(${tool:sqlstring})": "f('a','it''s')",
		"$__conditionalAll(host IN (${host:sqlstring}), $host)":     "1=1",
		"$__conditionalAll(hasAny(t, [${tool:sqlstring}]), $tool)":  "hasAny(t, ['a','it''s'])",
		"$__timeInterval(ts) / $__interval_s":                       "toStartOfInterval(toDateTime(ts), INTERVAL 90 second) / 90",
		"x > $__fromTime AND $__conditionalAll(f(${x}), $host) + 1": "x > toDateTime(1000) AND 1=1 + 1",
	} {
		if got := e.sql(t, in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
