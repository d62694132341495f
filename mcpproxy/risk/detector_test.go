package risk

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/risk/detector"
)

// TestDetectorDocument compares the published list with the code.
func TestDetectorDocument(t *testing.T) {
	text, err := os.ReadFile("detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.+) \\| (.*) ?\\|$").FindAllStringSubmatch(string(text), -1) {
		one := detector.Set(1) << len(words)
		words = append(words, row[1])
		want := raises(one, Read).String()
		if writing := raises(one, Write); writing != raises(one, Read) {
			want += "; " + writing.String() + " if the tool writes"
		}
		if got := strings.TrimSpace(row[3]); got != want {
			t.Errorf("detectors.md has the category %q for %s, want %q", got, row[1], want)
		}
	}
	if diff := cmp.Diff(detector.All(), words); diff != "" {
		t.Errorf("detectors.md differs from the code (-code +document):\n%s", diff)
	}
}
