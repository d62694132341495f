//go:build !linux && !darwin

package chdb

import (
	"context"
	"io"
	"runtime"
)

// Run returns an error: libchdb does not support this system.
func Run(context.Context, Config) error { return setupError{missing(runtime.GOOS, runtime.GOARCH)} }

// AwaitEnd returns when stdin ends.
func AwaitEnd(stdin io.Reader) { _, _ = io.Copy(io.Discard, stdin) }

func inUse(string) error { return nil }
