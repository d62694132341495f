package main

import (
	"auditproxy/cmd/internal/cli"
)

// A checker finds problems in combinations of values that are valid one by one.
type checker struct{ cli.Checker }
