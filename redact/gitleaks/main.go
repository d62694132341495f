// Command gitleaks writes the rules of gitleaks, and the samples that its own
// rule generators make, to testdata/gitleaks.json.gz. It needs the Go module
// proxy. The samples differ from run to run; the rules do not.
package main

import (
	"bytes"
	"compress/gzip"
	_ "embed" // validate.go.txt
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is pinned; the checksum database vouches for it.
const module = "github.com/zricethezav/gitleaks/v8@v8.30.1"

// validate replaces a file of the module: instead of trying the samples it
// writes them down.
//
//go:embed validate.go.txt
var validate []byte

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	temp, err := os.MkdirTemp("", "gitleaks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	download := exec.Command("go", "mod", "download", "-json", module)
	download.Stderr = os.Stderr
	out, err := download.Output()
	if err != nil {
		return fmt.Errorf("downloading %s: %w", module, err)
	}
	var info struct{ Dir string }
	if err := json.Unmarshal(out, &info); err != nil {
		return fmt.Errorf("reading what go mod download says: %w", err)
	}
	source := filepath.Join(temp, "source")
	if err := os.CopyFS(source, os.DirFS(info.Dir)); err != nil {
		return fmt.Errorf("copying %q: %w", info.Dir, err)
	}
	generate := filepath.Join(source, "cmd/generate/config")
	if err := os.WriteFile(filepath.Join(generate, "utils/validate.go"), validate, 0o644); err != nil {
		return err
	}
	samples := filepath.Join(temp, "samples.json")
	c := exec.Command("go", "run", ".", filepath.Join(temp, "gitleaks.toml"))
	c.Dir, c.Stderr, c.Env = generate, os.Stderr, append(os.Environ(), "SAMPLES="+samples)
	if err := c.Run(); err != nil {
		return fmt.Errorf("running the generators of %s: %w", module, err)
	}
	b, err := os.ReadFile(samples)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(b); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile("testdata/gitleaks.json.gz", packed.Bytes(), 0o644)
}
