package chdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// errNoLibrary means that libchdb was not found.
var errNoLibrary = errors.New("no libchdb")

// findLibrary returns the path of libchdb: from the configuration, next to
// this program, in the source tree that it was built in, or where the
// official installer puts it. It never searches the working directory.
func findLibrary(configured string) (string, error) {
	if configured != "" {
		if _, err := os.Stat(configured); err != nil {
			return "", fmt.Errorf("%w where local.library says: %w", errNoLibrary, err)
		}
		return configured, nil
	}
	var places []string
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		places = append(places, filepath.Join(dir, "libchdb.so"), filepath.Join(dir, "..", ".tools", "libchdb", "libchdb.so"))
	}
	places = append(places, "/usr/local/lib/libchdb.so", "/usr/lib/libchdb.so", "/opt/homebrew/lib/libchdb.so")
	for _, path := range places {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", missing(runtime.GOOS, runtime.GOARCH)
}

// missing returns the remedy for a missing library.
func missing(goos, goarch string) error {
	if goos != "linux" || goarch != "amd64" {
		return fmt.Errorf("%w, ClickHouse's engine as a library, is published for %s on %s: set clickhouse.addr to a ClickHouse server", errNoLibrary, goos, goarch)
	}
	return fmt.Errorf(`%w, ClickHouse's engine as a library, is on this machine: install it with "curl -sL https://lib.chdb.io | bash", or "make libchdb" in the source tree, or set local.library to where it is, or clickhouse.addr to a ClickHouse server`, errNoLibrary)
}
