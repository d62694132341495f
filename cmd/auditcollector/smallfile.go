package main

import (
	"fmt"
	"iter"
	"os"
	"strings"

	"auditproxy/cmd/internal/cli"
)

// maxSmall is the size limit of a file of receivers, or with secrets, in bytes.
const maxSmall = 1 << 20

// readSmall reads such a file.
func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSmall {
		return nil, fmt.Errorf("%q has more than %s", name, cli.FormatSize(maxSmall))
	}
	return os.ReadFile(name)
}

// contentLines returns the lines of a text and their numbers, without the space around
// them. It leaves out empty ones and those that begin with #.
func contentLines(text []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !yield(n, line) {
				return
			}
		}
	}
}
