//go:build !linux && !darwin

package chdb

import (
	"context"
	"runtime"
)

// Run returns an error: libchdb does not support this system.
func Run(context.Context, Config) error { return setupError{missing(runtime.GOOS, runtime.GOARCH)} }

func inUse(string) error { return nil }
