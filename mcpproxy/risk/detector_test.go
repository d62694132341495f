package risk

import (
	"math/bits"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDetectorDocument compares the published list with the code.
func TestDetectorDocument(t *testing.T) {
	text, err := os.ReadFile("detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.+) \\| (.*) ?\\|$").FindAllStringSubmatch(string(text), -1) {
		one := Detectors(1) << len(words)
		words = append(words, row[1])
		want := raises(one, Read).String()
		if writing := raises(one, Write); writing != raises(one, Read) {
			want += "; " + writing.String() + " if the tool writes"
		}
		if got := strings.TrimSpace(row[3]); got != want {
			t.Errorf("detectors.md has the category %q for %s, want %q", got, row[1], want)
		}
	}
	if diff := cmp.Diff(AllDetectors(), words); diff != "" {
		t.Errorf("detectors.md differs from the code (-code +document):\n%s", diff)
	}
}

func TestDetectorWords(t *testing.T) {
	if n := bits.OnesCount64(uint64(allDetectors)); n != len(detectorWords) {
		t.Fatalf("%d detectors have %d words", n, len(detectorWords))
	}
	if got := (NULByte | RecursiveDelete).Words(); !cmp.Equal(got, []string{"recursive_delete", "nul_byte"}) {
		t.Errorf("Words = %q", got)
	}
	if got := Detectors(0).Words(); len(got) != 0 {
		t.Errorf("no detectors have the words %q", got)
	}
}
