package main

import "context"

// runProxy wraps argv[0] until it ends and returns this program's exit code.
func runProxy(ctx context.Context, a *app, cfg config, argv []string) int { return exitUnclear }
