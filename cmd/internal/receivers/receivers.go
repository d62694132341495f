// Package receivers reads files of receivers of exports.
//
// The files, from the top: receivers, target, spec.
package receivers

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/alert"
	"auditproxy/collector/yamlfile"

	"go.yaml.in/yaml/v3"
)

// A File is the text of a file of receivers.
type File struct {
	Name string // for messages
	Text []byte
}

// Load checks receivers. The error lists all problems, each with file, line and
// column. Nothing is connected, and no other file is read; only links are followed.
// now is what "since" is relative to.
func Load(files []File, paths alert.Paths, now time.Time) ([]Spec, error) {
	var list []Spec
	var problems []error
	seen, written := map[string]string{OTLPName: "the keys otlp.*"}, map[string]string{}
	for _, f := range files {
		file, doc := yamlfile.Parse(f.Name, f.Text, "there are no receivers")
		if doc != nil {
			l := loader{File: file, seen: seen, written: written, paths: paths, now: now}
			l.Mapping(doc, map[string]func(*yaml.Node){"receivers": func(n *yaml.Node) {
				if n.Kind != yaml.SequenceNode {
					l.Problem(n, "want a list of receivers")
					return
				}
				for _, item := range n.Content {
					list = append(list, l.receiver(item))
				}
			}})
			if doc.Kind == yaml.MappingNode && !yamlfile.Has(doc, "receivers") {
				l.Problem(doc, "there are no receivers")
			}
		}
		if err := file.Err(); err != nil {
			problems = append(problems, err)
		}
	}
	return list, errors.Join(problems...)
}

// receiverName matches the names of receivers.
var receiverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (l *loader) receiver(n *yaml.Node) Spec {
	s := Spec{at: fmt.Sprintf("%s:%d:%d", l.Name, n.Line, n.Column), Alerts: true}
	targets := 0
	target := func(read func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if targets++; targets > 1 {
				l.Problem(n, "want one of otlp, kafka, file and http")
			}
			read(n)
		}
	}
	ok := l.Mapping(n, map[string]func(*yaml.Node){
		"name":      func(n *yaml.Node) { s.Name = l.name(n) },
		"format":    func(n *yaml.Node) { s.Format = l.Choice(n, OTLP, OCSF, NDJSON) },
		"when":      func(n *yaml.Node) { s.Filter = l.filter(n) },
		"since":     func(n *yaml.Node) { s.Since = l.since(n) },
		"alerts":    func(n *yaml.Node) { s.Alerts = l.Bool(n) },
		"raw":       func(n *yaml.Node) { s.Raw = l.Bool(n) },
		"arguments": func(n *yaml.Node) { s.Arguments = l.Bool(n) },
		"otlp":      target(func(n *yaml.Node) { s.OTLP = l.otlp(n) }),
		"kafka":     target(func(n *yaml.Node) { s.Kafka = l.kafka(n) }),
		"file":      target(func(n *yaml.Node) { s.File = l.file(n) }),
		"http":      target(func(n *yaml.Node) { s.HTTP = l.http(n) }),
	})
	if !ok {
		return s
	}
	if !yamlfile.Has(n, "name") {
		l.Problem(n, "the receiver has no name")
	}
	if targets == 0 {
		l.Problem(n, "the receiver goes nowhere: want one of otlp, kafka, file and http")
	}
	s.Format = cmp.Or(s.Format, map[bool]string{true: OTLP, false: OCSF}[s.OTLP != nil])
	switch {
	case targets != 1:
	case s.OTLP != nil && s.Format != OTLP:
		l.Problem(n, "otlp goes with the format otlp, not %s", s.Format)
	case s.OTLP == nil && s.Format == OTLP:
		l.Problem(n, "the format otlp goes with otlp, not with kafka, file or http")
	}
	for _, only := range []struct{ name, format string }{{"alerts", OCSF}, {"raw", OCSF}, {"arguments", OTLP}} {
		if yamlfile.Has(n, only.name) && s.Format != only.format {
			l.Problem(n, "%s is for the format %s", only.name, only.format)
		}
	}
	s.Alerts = s.Alerts && s.Format == OCSF
	return s
}

func (l *loader) name(n *yaml.Node) string {
	name := l.Text(n)
	if !receiverName.MatchString(name) {
		l.Problem(n, "%q is not a name of a receiver, want lower-case letters, digits and hyphens", name)
	}
	if where, twice := l.seen[name]; twice {
		l.Problem(n, "%q is the name of the receiver at %s", name, where)
	}
	l.seen[name] = fmt.Sprintf("%s:%d", l.Name, n.Line)
	return name
}

func (l *loader) filter(n *yaml.Node) *alert.Filter {
	f, err := alert.NewFilter(l.Text(n), l.paths)
	var of *alert.FilterError
	switch {
	case errors.As(err, &of):
		for _, p := range of.Problems {
			l.ProblemIn(n, p.Line, p.Column, "%s", p.Text)
		}
	case err != nil:
		l.Problem(n, "%s", err)
	}
	return f
}

// since returns the arrival from which on a new receiver gets records, zero for now.
func (l *loader) since(n *yaml.Node) time.Time {
	text := n.Value // a date has another tag than text
	if n.Kind != yaml.ScalarNode || text == "" {
		l.Problem(n, "want a time")
		return time.Time{}
	}
	if text == "now" {
		return time.Time{}
	}
	t, err := terminal.ParseTime(text, l.now)
	if err != nil {
		l.Problem(n, "%s", err)
	}
	return t
}
