package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxConfig is the size of the largest configuration that is read. Claude Code
// keeps a history of prompts in its own.
const maxConfig = 64 << 20

// A config is one configuration as it was read.
type config struct {
	path    string // as the user wrote it
	target  string // with links followed, so that a write does not replace a link
	info    fs.FileInfo
	data    []byte
	servers []server // in the order of the file
	named   bool     // by the user, not found
}

// readConfig reads the configuration at path. A server that runs the program at
// self counts as wrapped, under any name.
func readConfig(path, self string) (config, error) {
	c := config{path: path}
	var err error
	if c.target, err = filepath.EvalSymlinks(path); errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("there is no file %q; name the configuration of an MCP client, and a server in it with --server", path)
	} else if err != nil {
		return c, fmt.Errorf("reading client configuration %q: %w", path, err)
	}
	if c.info, err = os.Stat(c.target); err != nil {
		return c, fmt.Errorf("reading client configuration: %w", err)
	}
	if !c.info.Mode().IsRegular() {
		return c, fmt.Errorf("reading client configuration %q: not a regular file", path)
	}
	if c.info.Size() > maxConfig {
		return c, fmt.Errorf("reading client configuration %q: it has more than %d MiB", path, maxConfig>>20)
	}
	if c.data, err = os.ReadFile(c.target); err != nil {
		return c, fmt.Errorf("reading client configuration: %w", err)
	}
	parse := parseServers
	for _, name := range []string{c.target, path} {
		switch strings.ToLower(filepath.Ext(name)) {
		case ".toml":
			parse = parseTOML
		case ".yaml", ".yml":
			parse = parseYAML
		}
	}
	if c.servers, err = parse(c.data, self); err != nil {
		return c, fmt.Errorf("reading client configuration %q: %w", path, err)
	}
	return c, nil
}

// linkCount returns how many names a file has, 1 where the system does not say.
func linkCount(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
