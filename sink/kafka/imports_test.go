package kafka

import (
	"go/build"
	"slices"
	"testing"
)

// TestImports: every server that is wrapped would wait for all of kafka-go to
// initialise.
func TestImports(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(pkg.Imports, "github.com/segmentio/kafka-go") {
		t.Error("this package imports all of kafka-go; its protocol packages are enough")
	}
}
