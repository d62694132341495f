package main

import (
	"auditproxy/cmd/internal/cli"
)

// A checker finds what is wrong with values that are right one by one.
type checker struct{ cli.Checker }
