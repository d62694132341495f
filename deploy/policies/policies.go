// Package policies has the policies that come with auditproxy.
package policies

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Prefix precedes the name of a policy where a file could be named too.
const Prefix = "preset:"

//go:embed *.yaml
var files embed.FS

// Preset returns the source of a policy by its name, such as libtmux-readonly.
// The error for an unknown name lists the known ones.
func Preset(name string) ([]byte, error) {
	names := Names()
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("reading preset %q: there is none: use one of %s", name, strings.Join(names, ", "))
	}
	source, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading preset %q: %w", name, err)
	}
	return source, nil
}

// Names returns the names of all presets, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // the root of an embedded tree can be read
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}
