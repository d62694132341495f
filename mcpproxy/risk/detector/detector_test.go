package detector

import (
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetectorWords(t *testing.T) {
	if n := bits.OnesCount64(uint64(all)); n != len(words) {
		t.Fatalf("%d detectors have %d words", n, len(words))
	}
	if got := (NULByte | RecursiveDelete).Words(); !cmp.Equal(got, []string{"recursive_delete", "nul_byte"}) {
		t.Errorf("Words = %q", got)
	}
	if got := Set(0).Words(); len(got) != 0 {
		t.Errorf("no detectors have the words %q", got)
	}
}
