package alert

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/yamlfile"
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

// LoadShipped is Load for the rules that come with this program.
func LoadShipped(paths Paths) (*Rules, error) {
	files, err := Shipped()
	if err != nil {
		return nil, err
	}
	return Load(files, paths)
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
		file, doc := yamlfile.Parse(f.Name, f.Text, "there are no rules")
		if doc != nil {
			l := loader{File: file, env: env, seen: seen}
			set.all = append(set.all, l.load(doc)...)
		}
		if err := file.Err(); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	set.index()
	return set, nil
}

// A loader reads one file.
type loader struct {
	*yamlfile.File
	env  *cel.Env
	seen map[string]string // positions of rules by name
}

func (l *loader) load(doc *yaml.Node) (rules []*Rule) {
	l.Mapping(doc, map[string]func(*yaml.Node){
		"rules": func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				l.Problem(n, "want a list of rules")
				return
			}
			for _, item := range n.Content {
				rules = append(rules, l.rule(item))
			}
		},
	})
	return rules
}

// ruleName matches the names of rules.
var ruleName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (l *loader) rule(n *yaml.Node) *Rule {
	r := &Rule{Every: time.Minute}
	var by *yaml.Node
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"name":       func(n *yaml.Node) { r.Name = l.name(n) },
		"title":      func(n *yaml.Node) { r.Title = l.Text(n) },
		"severity":   func(n *yaml.Node) { r.Severity = l.severity(n) },
		"reason":     func(n *yaml.Node) { r.Reason = strings.TrimSpace(l.Text(n)) },
		"operations": func(n *yaml.Node) { r.Operations = l.Texts(n) },
		"kinds":      func(n *yaml.Node) { r.Kinds = l.kinds(n) },
		"containing": func(n *yaml.Node) { r.Containing = l.Texts(n) },
		"anomalies":  func(n *yaml.Node) { r.Anomalies = l.Texts(n) },
		"detections": func(n *yaml.Node) { r.Detections = l.Texts(n) },
		"approvals":  func(n *yaml.Node) { r.Approvals = l.Texts(n) },
		"when":       func(n *yaml.Node) { r.when = l.expression(n, cel.BoolType) },
		"details":    func(n *yaml.Node) { r.details = l.details(n) },
		"suppress":   func(n *yaml.Node) { r.suppress, by = l.suppress(n) },
		"threshold":  func(n *yaml.Node) { r.Threshold = l.threshold(n) },
		"first_seen": func(n *yaml.Node) { r.FirstSeen = l.firstSeen(n) },
		"query":      func(n *yaml.Node) { r.Query = strings.TrimSpace(l.Text(n)) },
		"copies":     func(n *yaml.Node) { r.Copies = l.Bool(n) },
		"every":      func(n *yaml.Node) { r.Every = l.Duration(n) },
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
		if need.value == "" && !yamlfile.Has(n, need.name) {
			l.Problem(n, "the rule has no %s", need.name)
		}
	}
	questions := 0
	for _, name := range []string{"threshold", "first_seen", "query"} {
		if yamlfile.Has(n, name) {
			questions++
		}
	}
	streams := slices.ContainsFunc([]string{"when", "details", "containing", "anomalies", "detections", "approvals"}, func(name string) bool { return yamlfile.Has(n, name) })
	switch {
	case questions > 1:
		l.Problem(n, "want one of threshold, first_seen and query")
	case questions == 1 && streams:
		l.Problem(n, "a rule with threshold, first_seen or query has no when, details, containing, anomalies, detections or approvals: its question says what it finds")
	case questions == 0 && yamlfile.Has(n, "every"):
		l.Problem(n, "every goes with threshold, first_seen or query")
	case yamlfile.Has(n, "copies") && !yamlfile.Has(n, "query"):
		l.Problem(n, "copies goes with query: what other rules find does not change with copies")
	case yamlfile.Has(n, "query") && (yamlfile.Has(n, "operations") || yamlfile.Has(n, "kinds")):
		l.Problem(n, "a query selects its own rows: it has no operations and no kinds")
	case questions == 0 && !yamlfile.Has(n, "operations") && !yamlfile.Has(n, "kinds"):
		l.Problem(n, "the rule names neither operations nor kinds")
	}
}

func (l *loader) name(n *yaml.Node) string {
	name := l.Text(n)
	if !ruleName.MatchString(name) {
		l.Problem(n, "%q is not a name of a rule, want lower-case letters, digits and hyphens", name)
	}
	if slices.Contains([]string{ruleFailed, sweepFailed, exportFails, notStored, notVerified}, name) {
		l.Problem(n, "%q is the name of alerts of the collector itself", name)
	}
	if where, twice := l.seen[name]; twice {
		l.Problem(n, "%q is the name of the rule at %s", name, where)
	}
	l.seen[name] = fmt.Sprintf("%s:%d", l.Name, n.Line)
	return name
}

func (l *loader) severity(n *yaml.Node) Severity {
	s := Severity(l.Text(n))
	if s != Info && s != Warning && s != Critical {
		l.Problem(n, "%q is not a severity, want info, warning or critical", s)
	}
	return s
}

func (l *loader) kinds(n *yaml.Node) (kinds []audit.Kind) {
	all := []audit.Kind{audit.KindCall, audit.KindOpen, audit.KindSessionStart, audit.KindSessionEnd, audit.KindAnomaly, audit.KindGap, audit.KindPolicy}
	for i, text := range l.Texts(n) {
		if !slices.Contains(all, audit.Kind(text)) {
			l.Problem(n.Content[i], "%q is not a kind of record, want one of %q", text, all)
		}
		kinds = append(kinds, audit.Kind(text))
	}
	return kinds
}

func (l *loader) threshold(n *yaml.Node) *Threshold {
	t := &Threshold{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"count":  func(n *yaml.Node) { t.Count = l.Count(n) },
		"within": func(n *yaml.Node) { t.Within = l.Duration(n) },
		"by":     func(n *yaml.Node) { t.By = l.columns(n) },
		"where":  func(n *yaml.Node) { t.Where = l.Text(n) },
	})
	if ok && !(yamlfile.Has(n, "count") && yamlfile.Has(n, "within")) {
		l.Problem(n, "a threshold needs count and within")
	}
	return t
}

func (l *loader) firstSeen(n *yaml.Node) *FirstSeen {
	f := &FirstSeen{}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"by":    func(n *yaml.Node) { f.By = l.columns(n) },
		"among": func(n *yaml.Node) { f.Among = l.columns(n) },
		"learn": func(n *yaml.Node) { f.Learn = l.Duration(n) },
		"where": func(n *yaml.Node) { f.Where = l.Text(n) },
	})
	if ok && !yamlfile.Has(n, "by") {
		l.Problem(n, "first_seen needs by")
	}
	return f
}

func (l *loader) columns(n *yaml.Node) []string {
	list := l.Texts(n)
	for i, name := range list {
		if column(name) == "" {
			l.Problem(n.Content[i], "%q is neither a column of events or operations nor args.NAME", name)
		}
	}
	return list
}

func (l *loader) suppress(n *yaml.Node) (s suppress, by *yaml.Node) {
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"for": func(n *yaml.Node) { s.within = l.Duration(n) },
		"by":  func(n *yaml.Node) { s.by, by = l.Texts(n), n },
	})
	if ok && !yamlfile.Has(n, "for") {
		l.Problem(n, "suppress needs for")
	}
	return s, by
}

// suppressible checks that an alert of r has the fields of its suppression.
// The columns of a query are not known here, so any name is accepted.
func (l *loader) suppressible(by *yaml.Node, r *Rule) {
	for i, name := range r.suppress.by {
		named := slices.ContainsFunc(r.details, func(d detail) bool { return d.name == name })
		if _, known := suppressFields[name]; !known && !named && !r.Scheduled() {
			l.Problem(by.Content[i], "%q is neither a field of alerts nor one of the rule's details", name)
		}
	}
}

func (l *loader) details(n *yaml.Node) (list []detail) {
	if n.Kind != yaml.MappingNode {
		l.Problem(n, "want names and expressions")
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, detail{n.Content[i].Value, l.expression(n.Content[i+1], cel.DynType)})
	}
	return list
}

// expression compiles CEL that gives a value of a type; DynType is any.
func (l *loader) expression(n *yaml.Node, want *cel.Type) cel.Program {
	p, problems := compile(l.env, l.Text(n), want)
	for _, at := range problems {
		l.ProblemIn(n, at.Line, at.Column, "%s", at.Text)
	}
	return p
}
