package main

import (
	"fmt"

	"auditproxy/cmd/internal/cli"
)

// newProgress shows on standard error how much of so many bytes is read, until
// Finish. It shows nothing if quiet or where that is no terminal.
func (a *app) newProgress(total int64, quiet bool) *cli.Progress {
	if quiet {
		return nil
	}
	return cli.StartProgress(a.stderr, total, "reading", fmt.Sprintf("%.1f MB", float64(total)/1e6))
}
