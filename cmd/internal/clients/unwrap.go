package clients

import (
	udiff "github.com/aymanbagabas/go-udiff"
)

// Unwrap gives the servers in these configurations their own commands back. Its
// error is like that of Wrap.
func Unwrap(cfg Config, paths []string) error { return unwrapRewrite(cfg).run(paths) }

func unwrapRewrite(cfg Config) *rewrite {
	return &rewrite{
		cfg:      cfg,
		verb:     "unwrap",
		done:     "unwrapped",
		concerns: func(s server) bool { return s.Wrapped },
		remark:   notUnwrapped,
		warning:  func(server) string { return "" },
		edits:    unwrapEdits,
	}
}

// notUnwrapped returns why unwrap leaves s alone, where that can be a surprise.
func notUnwrapped(s server) string {
	if s.Problem == "" {
		return ""
	}
	return "is not unwrapped: " + s.Problem
}

func unwrapEdits(data []byte, s server, _ string) []udiff.Edit {
	if s.Remote {
		return unwrapRemoteEdits(data, s)
	}
	return unwrapCommand(data, s)
}
