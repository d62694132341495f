package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/collector/alert"
)

const (
	ruleCount  = 30
	ruleTarget = 20 // percent
)

// rules measures how much more processor time a record costs with 30 alert
// rules that check each record than with none.
func (b *bench) rules(ctx context.Context) error {
	none, err := noRules(b.dir)
	if err != nil {
		return err
	}
	many, err := writeRules(b.dir)
	if err != nil {
		return err
	}
	n := min(b.records, 1_000_000) // more would only take longer
	without, err := b.perRecord(ctx, none, n)
	if err != nil {
		return err
	}
	with, err := b.perRecord(ctx, many, n)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{
		name: fmt.Sprintf("%d alert rules, processor time over none", ruleCount), unit: "%",
		value: 100 * (with - without) / without, compare: atMost, target: ruleTarget,
	})
	return nil
}

// noRules writes a file without rules, and returns its path.
func noRules(dir string) (path string, err error) {
	path = filepath.Join(dir, "none.yaml")
	return path, os.WriteFile(path, []byte("rules: []\n"), 0o600)
}

// writeRules writes a file with ruleCount rules that check each record, and
// returns its path. They are the shipped ones, repeated; scheduled ones are
// left out.
func writeRules(dir string) (path string, err error) {
	shipped, err := alert.Shipped()
	if err != nil {
		return "", err
	}
	const start = "\n  - name: "
	var rules []string
	for _, f := range shipped {
		_, text, _ := strings.Cut(string(f.Text), start)
		for rule := range strings.SplitSeq(text, start) {
			loaded, err := alert.Load([]alert.File{{Name: f.Name, Text: []byte("rules:" + start + rule)}}, alert.Paths{})
			if err != nil {
				return "", err
			}
			if all := loaded.All(); len(all) != 1 {
				return "", fmt.Errorf("%s: %d rules where one is expected", f.Name, len(all))
			} else if !all[0].Scheduled() {
				rules = append(rules, rule)
			}
		}
	}
	if len(rules) == 0 {
		return "", errors.New("no shipped rule looks at each record")
	}
	text := "rules:"
	for i := range ruleCount {
		text += fmt.Sprintf("%scopy-%d-of-%s", start, i/len(rules)+1, rules[i%len(rules)])
	}
	path = filepath.Join(dir, "many.yaml")
	return path, os.WriteFile(path, []byte(text+"\n"), 0o600)
}
