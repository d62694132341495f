package review

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"
)

// functions are the templates' functions. Untrusted text goes through text or
// clip.
var functions = template.FuncMap{
	"text":     escape.Text,
	"clip":     clip,
	"name":     clipName,
	"short":    shortID,
	"stamp":    stamp,
	"clock":    clock,
	"day":      func(t time.Time) string { return t.UTC().Format("2006-01-02") },
	"iso":      func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") },
	"ago":      ago,
	"count":    count,
	"last":     func(n uint64) string { return count(n - 1) },
	"plural":   plural,
	"percent":  percent,
	"many":     func(part, whole uint64) bool { return 10*part >= whole && part > 0 },
	"millis":   millis,
	"seconds":  func(s float64) string { return millis(s * 1000) },
	"link":     link,
	"join":     func(list []string) string { return strings.Join(list, ", ") },
	"outcome":  newMark,
	"refused":  func(a alert.Alert) string { return newTree(a.Details).member("refused") },
	"narrate":  narrateLine,
	"severity": newSeverity,
	"add":      func(a, b int) int { return a + b },
	"lines":    func(s string) []string { return strings.Split(s, "\n") },
	"escaped":  escapedLines,
	"rawline":  func(s string) string { return string(escape.AppendJSON(nil, []byte(s))) },
	"tab":      func(section, name, path, label string) tab { return tab{path, label, section == name} },
	"options":  options,
	"title":    lineTitle,
	"nested":   func(l store.Line) int { return max(len(l.Ops)-1, 0) },
	"anchor":   anchor,
	"filtered": func(w when, name, value string) string { return filtered(w, name, value) },
	"share":    share,
	"hints":    hints,
	"effect":   effectMark,
	"danger":   dangerous,
}

// A tab is an entry of the menu.
type tab struct {
	Path, Label string
	Here        bool
}

// An option is a choice of a form.
type option struct {
	Value, Label string
	Chosen       bool
}

// options are choices from pairs of value and label. A requested value that
// is not among them is added: the form must agree with its page.
func options(chosen string, pairs ...string) (list []option) {
	found := false
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, option{pairs[i], pairs[i+1], pairs[i] == chosen})
		found = found || pairs[i] == chosen
	}
	if !found {
		list = append(list, option{chosen, clip(40, chosen), true})
	}
	return list
}

// lineTitle names a record of a list.
func lineTitle(l store.Line) string {
	switch {
	case l.Tool != "":
		return l.Tool
	case l.Target != "":
		return l.Method + " " + l.Target
	case l.Method != "":
		return l.Method
	}
	return strings.ReplaceAll(l.Kind, "_", " ")
}

// anchor returns the fragment of a tool's definitions on their page. Names
// are untrusted, so it is a hash of them.
func anchor(server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	return "t-" + hex.EncodeToString(sum[:6])
}

// filtered returns the link to the calls of a time that meet one condition.
func filtered(w when, name, value string) string {
	if len(value) > maxLinked {
		return ""
	}
	return with("/calls", w.values(), name, value)
}

// share returns n in percent of most, for a bar. A nonzero n is visible.
func share(n, most uint64) string {
	if most == 0 || n == 0 {
		return "0"
	}
	return strconv.FormatFloat(max(100*float64(n)/float64(most), 0.5), 'f', 1, 64)
}

// hints returns the annotations of a tool, each in a few words.
func hints(annotations string) (list []string) {
	n := newTree(annotations)
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		name := strings.TrimSuffix(c.Name, "Hint")
		switch c.Text {
		case "true":
			list = append(list, name)
		case "false":
			list = append(list, "not "+name)
		}
	}
	return list
}
