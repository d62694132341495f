package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"auditproxy/mcpproxy/policy"

	"go.yaml.in/yaml/v3"
)

// TestDocumentedKeysExist checks that each key that the documentation mentions,
// in its text or in an example, is a key of a program, and that the policies in
// examples load without a warning. That each key is documented, and that the
// configurations in examples load, is checked by the programs' own tests.
func TestDocumentedKeysExist(t *testing.T) {
	keys := documentedKeys(t)
	first := map[string]bool{} // the first words of keys with dots
	for _, k := range keys {
		if word, _, dots := strings.Cut(k, "."); dots {
			first[word] = true
		}
	}
	mention := regexp.MustCompile("`([a-z]+(?:\\.[a-z_]+)+)(?:: [^`]*)?`")
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	mentions := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range mention.FindAllStringSubmatch(string(text), -1) {
			word, _, _ := strings.Cut(match[1], ".")
			if strings.HasPrefix(match[1], "log.record.") {
				continue // OpenTelemetry's
			}
			if first[word] && !slices.Contains([]string{".jsonl", ".json", ".yaml"}, filepath.Ext(match[1])) {
				mentions++
				if !slices.Contains(keys, match[1]) {
					t.Errorf("%s mentions %s, which is no key of a program", page, match[1])
				}
			}
		}
		for _, match := range example.FindAllStringSubmatch(string(text), -1) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(match[1]), &values); err != nil {
				t.Errorf("%s: %v in the example\n%s", page, err, match[1])
				continue
			}
			if values["rules"] != nil { // a file of alert rules
				continue
			}
			if values["version"] != nil {
				p, err := policy.Load([]byte(match[1]), "policy.yaml")
				if err != nil {
					t.Errorf("%s: the policy in the example does not load: %v", page, err)
					continue
				}
				for _, w := range p.Describe(nil).Warnings {
					t.Errorf("%s: auditproxy policy check warns of the policy in the example: %v", page, &w)
				}
				continue
			}
			for _, key := range flatten("", values) {
				mentions++
				if key != "enforce" && !slices.Contains(keys, key) {
					t.Errorf("%s has an example with %s, which is no key of a program", page, key)
				}
			}
		}
	}
	if mentions < 20 {
		t.Errorf("found %d mentions of keys, want at least 20: the patterns of this test no longer match", mentions)
	}
}

// documentedKeys returns the keys in the tables of docs/configuration.md, which
// the programs' tests compare with their keys.
func documentedKeys(t *testing.T) (keys []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, match[1])
	}
	if len(keys) < 60 {
		t.Fatalf("docs/configuration.md lists %d keys, want at least 60", len(keys))
	}
	return keys
}

// flatten returns the keys of nested values, their words joined by dots.
func flatten(prefix string, values map[string]any) (keys []string) {
	for name, v := range values {
		if nested, ok := v.(map[string]any); ok {
			keys = append(keys, flatten(prefix+name+".", nested)...)
		} else {
			keys = append(keys, prefix+name)
		}
	}
	return keys
}
