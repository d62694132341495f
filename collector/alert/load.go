package alert

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"
)

//go:embed rules/*.yaml
var shipped embed.FS

// A File is the text of rules.
type File struct {
	Name string // for messages
	Text []byte
}

// Shipped returns the rules that come with this program.
func Shipped() ([]File, error) {
	names, err := fs.Glob(shipped, "rules/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the shipped rules: %w", err)
	}
	files := make([]File, len(names))
	for i, name := range names {
		text, err := shipped.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the shipped rules: %w", err)
		}
		files[i] = File{name, text}
	}
	return files, nil
}

// Load checks rules. The error lists all problems, each with file, line and
// column.
func Load(files []File, paths Paths) (*Rules, error) {
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("making the language of conditions: %w", err)
	}
	set := &Rules{paths: paths}
	var problems []error
	seen := map[string]string{}
	for _, f := range files {
		l := loader{file: f.Name, lines: strings.Split(string(f.Text), "\n"), env: env, seen: seen}
		set.all = append(set.all, l.load(f.Text)...)
		slices.SortStableFunc(l.problems, func(a, b problem) int { return cmp.Or(a.line-b.line, a.column-b.column) })
		for _, p := range l.problems {
			problems = append(problems, fmt.Errorf("%s:%d:%d: %s", f.Name, p.line, p.column, p.text))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	set.index()
	return set, nil
}

// A problem is a mistake and its position.
type problem struct {
	line, column int
	text         string
}

// A loader reads one file.
type loader struct {
	file     string
	lines    []string
	env      *cel.Env
	seen     map[string]string // positions of rules by name
	problems []problem
}

func (l *loader) problem(at *yaml.Node, format string, args ...any) {
	l.problems = append(l.problems, problem{max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...)})
}

// yamlLine finds the line in an error of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func (l *loader) load(text []byte) (rules []*Rule) {
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		l.problem(&doc, "there are no rules")
		return nil
	case err != nil:
		at := yaml.Node{}
		message := err.Error()
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
			message = message[len(m[0]):]
		}
		l.problem(&at, "%s", message)
		return nil
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		l.problem(&more, "want one YAML document, got more")
	}
	l.mapping(doc.Content[0], map[string]func(*yaml.Node){
		"rules": func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				l.problem(n, "want a list of rules")
				return
			}
			for _, item := range n.Content {
				rules = append(rules, l.rule(item))
			}
		},
	})
	return rules
}

// mapping calls the function for each member of n, and reports whether n is a
// mapping.
func (l *loader) mapping(n *yaml.Node, members map[string]func(*yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		l.problem(n, "want names and values")
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		take, known := members[name.Value]
		switch {
		case !known:
			l.problem(name, "%q is not known here", name.Value)
		case seen[name.Value]:
			l.problem(name, "%q is listed twice", name.Value)
		case value.Kind == yaml.AliasNode:
			l.problem(value, "want the value itself, not an alias")
		default:
			take(value)
		}
		seen[name.Value] = true
	}
	return true
}

// ruleName matches the names of rules.
var ruleName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (l *loader) rule(n *yaml.Node) *Rule {
	r := &Rule{Every: time.Minute}
	var by *yaml.Node
	ok := l.mapping(n, map[string]func(*yaml.Node){
		"name":       func(n *yaml.Node) { r.Name = l.name(n) },
		"title":      func(n *yaml.Node) { r.Title = l.text(n) },
		"severity":   func(n *yaml.Node) { r.Severity = l.severity(n) },
		"reason":     func(n *yaml.Node) { r.Reason = strings.TrimSpace(l.text(n)) },
		"operations": func(n *yaml.Node) { r.Operations = l.texts(n) },
		"kinds":      func(n *yaml.Node) { r.Kinds = l.kinds(n) },
		"containing": func(n *yaml.Node) { r.Containing = l.texts(n) },
		"anomalies":  func(n *yaml.Node) { r.Anomalies = l.texts(n) },
		"detections": func(n *yaml.Node) { r.Detections = l.texts(n) },
		"approvals":  func(n *yaml.Node) { r.Approvals = l.texts(n) },
		"when":       func(n *yaml.Node) { r.when = l.expression(n, cel.BoolType) },
		"details":    func(n *yaml.Node) { r.details = l.details(n) },
		"suppress":   func(n *yaml.Node) { r.suppress, by = l.suppress(n) },
		"threshold":  func(n *yaml.Node) { r.Threshold = l.threshold(n) },
		"first_seen": func(n *yaml.Node) { r.FirstSeen = l.firstSeen(n) },
		"query":      func(n *yaml.Node) { r.Query = strings.TrimSpace(l.text(n)) },
		"every":      func(n *yaml.Node) { r.Every = l.duration(n) },
	})
	if ok {
		l.complete(n, r)
		l.suppressible(by, r)
	}
	if len(r.Kinds) == 0 {
		r.Kinds = []audit.Kind{audit.KindCall, audit.KindOpen}
		if r.Scheduled() {
			r.Kinds = r.Kinds[:1] // or a long call would count twice
		}
	}
	return r
}

// complete reports missing and conflicting members of a rule.
func (l *loader) complete(n *yaml.Node, r *Rule) {
	for _, need := range []struct{ name, value string }{
		{"name", r.Name}, {"title", r.Title}, {"severity", string(r.Severity)}, {"reason", r.Reason},
	} {
		if need.value == "" && !has(n, need.name) {
			l.problem(n, "the rule has no %s", need.name)
		}
	}
	questions := 0
	for _, name := range []string{"threshold", "first_seen", "query"} {
		if has(n, name) {
			questions++
		}
	}
	streams := slices.ContainsFunc([]string{"when", "details", "containing", "anomalies", "detections", "approvals"}, func(name string) bool { return has(n, name) })
	switch {
	case questions > 1:
		l.problem(n, "want one of threshold, first_seen and query")
	case questions == 1 && streams:
		l.problem(n, "a rule with threshold, first_seen or query has no when, details, containing, anomalies, detections or approvals: its question says what it finds")
	case questions == 0 && has(n, "every"):
		l.problem(n, "every goes with threshold, first_seen or query")
	case has(n, "query") && (has(n, "operations") || has(n, "kinds")):
		l.problem(n, "a query selects its own rows: it has no operations and no kinds")
	case questions == 0 && !has(n, "operations") && !has(n, "kinds"):
		l.problem(n, "the rule names neither operations nor kinds")
	}
}

func has(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func (l *loader) name(n *yaml.Node) string {
	name := l.text(n)
	if !ruleName.MatchString(name) {
		l.problem(n, "%q is not a name of a rule, want lower-case letters, digits and hyphens", name)
	}
	if name == ruleFailed || name == sweepFailed || name == exportFails {
		l.problem(n, "%q is the name of alerts of the collector itself", name)
	}
	if where, twice := l.seen[name]; twice {
		l.problem(n, "%q is the name of the rule at %s", name, where)
	}
	l.seen[name] = fmt.Sprintf("%s:%d", l.file, n.Line)
	return name
}

func (l *loader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || strings.TrimSpace(n.Value) == "" {
		l.problem(n, "want text")
		return "?" // set, so that it is not reported as missing
	}
	return n.Value
}

func (l *loader) texts(n *yaml.Node) (list []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		l.problem(n, "want a list of texts")
		return nil
	}
	for _, item := range n.Content {
		list = append(list, l.text(item))
	}
	return list
}

func (l *loader) severity(n *yaml.Node) Severity {
	s := Severity(l.text(n))
	if s != Info && s != Warning && s != Critical {
		l.problem(n, "%q is not a severity, want info, warning or critical", s)
	}
	return s
}

func (l *loader) kinds(n *yaml.Node) (kinds []audit.Kind) {
	all := []audit.Kind{audit.KindCall, audit.KindOpen, audit.KindSessionStart, audit.KindSessionEnd, audit.KindAnomaly, audit.KindGap, audit.KindPolicy}
	for i, text := range l.texts(n) {
		if !slices.Contains(all, audit.Kind(text)) {
			l.problem(n.Content[i], "%q is not a kind of record, want one of %q", text, all)
		}
		kinds = append(kinds, audit.Kind(text))
	}
	return kinds
}

func (l *loader) duration(n *yaml.Node) time.Duration {
	text := l.text(n)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		l.problem(n, "%q is not a time, want whole seconds such as 90s, 10m or 7d", text)
	}
	return d
}

func (l *loader) count(n *yaml.Node) uint64 {
	count, err := strconv.ParseUint(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || count == 0 {
		l.problem(n, "want a number, at least 1")
	}
	return count
}

func (l *loader) threshold(n *yaml.Node) *Threshold {
	t := &Threshold{}
	ok := l.mapping(n, map[string]func(*yaml.Node){
		"count":  func(n *yaml.Node) { t.Count = l.count(n) },
		"within": func(n *yaml.Node) { t.Within = l.duration(n) },
		"by":     func(n *yaml.Node) { t.By = l.columns(n) },
		"where":  func(n *yaml.Node) { t.Where = l.text(n) },
	})
	if ok && !(has(n, "count") && has(n, "within")) {
		l.problem(n, "a threshold needs count and within")
	}
	return t
}

func (l *loader) firstSeen(n *yaml.Node) *FirstSeen {
	f := &FirstSeen{}
	ok := l.mapping(n, map[string]func(*yaml.Node){
		"by":    func(n *yaml.Node) { f.By = l.columns(n) },
		"among": func(n *yaml.Node) { f.Among = l.columns(n) },
		"learn": func(n *yaml.Node) { f.Learn = l.duration(n) },
		"where": func(n *yaml.Node) { f.Where = l.text(n) },
	})
	if ok && !has(n, "by") {
		l.problem(n, "first_seen needs by")
	}
	return f
}

func (l *loader) columns(n *yaml.Node) []string {
	list := l.texts(n)
	for i, name := range list {
		if column(name) == "" {
			l.problem(n.Content[i], "%q is neither a column of events or operations nor args.NAME", name)
		}
	}
	return list
}

func (l *loader) suppress(n *yaml.Node) (s suppress, by *yaml.Node) {
	ok := l.mapping(n, map[string]func(*yaml.Node){
		"for": func(n *yaml.Node) { s.within = l.duration(n) },
		"by":  func(n *yaml.Node) { s.by, by = l.texts(n), n },
	})
	if ok && !has(n, "for") {
		l.problem(n, "suppress needs for")
	}
	return s, by
}

// suppressible checks that an alert of r has the fields of its suppression.
// The columns of a query are not known here, so any name is accepted.
func (l *loader) suppressible(by *yaml.Node, r *Rule) {
	for i, name := range r.suppress.by {
		named := slices.ContainsFunc(r.details, func(d detail) bool { return d.name == name })
		if _, known := suppressFields[name]; !known && !named && !r.Scheduled() {
			l.problem(by.Content[i], "%q is neither a field of alerts nor one of the rule's details", name)
		}
	}
}

func (l *loader) details(n *yaml.Node) (list []detail) {
	if n.Kind != yaml.MappingNode {
		l.problem(n, "want names and expressions")
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, detail{n.Content[i].Value, l.expression(n.Content[i+1], cel.DynType)})
	}
	return list
}

// expression compiles CEL that gives a value of a type; DynType is any.
func (l *loader) expression(n *yaml.Node, want *cel.Type) cel.Program {
	text := l.text(n)
	ast, issues := l.env.Compile(text)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			line, column := l.position(n, e.Location.Line(), e.Location.Column())
			l.problems = append(l.problems, problem{line, column, e.Message})
		}
		return nil
	}
	if got := ast.OutputType(); want != cel.DynType && !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		l.problem(n, "the expression gives %s, want %s", got, want)
		return nil
	}
	p, err := l.env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
	if err != nil {
		l.problem(n, "%s", err)
		return nil
	}
	return p
}

// position finds a place of an expression, a line from 1 and a column from 0,
// in the file that holds it.
func (l *loader) position(n *yaml.Node, line, column int) (int, int) {
	switch n.Style {
	case yaml.LiteralStyle: // the text begins on the line after the bar, whose indentation is that of all
		return n.Line + line, l.indent(n.Line+1) + column + 1
	case yaml.FoldedStyle: // lines were joined by a space each
		at := n.Line + 1
		for at < len(l.lines) {
			length := len(l.lines[at-1]) - l.indent(n.Line+1)
			if column <= length {
				break
			}
			column -= length + 1
			at++
		}
		return at, l.indent(n.Line+1) + column + 1
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		column++
	}
	if line > 1 { // a plain text over several lines
		return n.Line + line - 1, column + 1
	}
	return n.Line, n.Column + column
}

func (l *loader) indent(line int) int {
	if line < 1 || line > len(l.lines) {
		return 0
	}
	text := l.lines[line-1]
	return len(text) - len(strings.TrimLeft(text, " "))
}
