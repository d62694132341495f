package clients

import (
	"bytes"

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

// unwrapEdits reverses wrapEdits, also where the server has been edited since:
// flags of the proxy, or the server's arguments changed, added or removed.
func unwrapEdits(data []byte, s server, _ string) []udiff.Edit {
	if s.Remote {
		return unwrapRemoteEdits(data, s)
	}
	args := s.elements()
	old := args[s.dashes+1]
	if s.joined {
		return []udiff.Edit{{Start: s.command.StartOffset, End: old.StartOffset}}
	}
	command := data[old.StartOffset:old.EndOffset]
	restore := udiff.Edit{Start: s.command.StartOffset, End: s.command.EndOffset, New: string(command)}
	remove := udiff.Edit{Start: args[0].StartOffset}
	last := s.dashes+2 == len(args)
	added := newArgs(s, string(command))
	switch {
	case !last:
		remove.End = args[s.dashes+2].StartOffset
	case bytes.HasPrefix(data[s.newList.at:], []byte(added)):
		remove.Start, remove.End = s.newList.at, s.newList.at+len(added)
	default:
		remove.Start, remove.End = emptied(data, s)
	}
	return []udiff.Edit{restore, remove}
}

// emptied returns the part of the list of arguments to remove if none of it is
// the server's own: all but comments, and space that was there before.
func emptied(data []byte, s server) (start, end int) {
	args := s.elements()
	first, last := args[0], args[len(args)-1]
	start, end = first.StartOffset, last.EndOffset
	closing := s.args.EndOffset - len("]")
	if last.AfterExtra != nil { // a trailing comma cannot stand alone
		end += len(last.AfterExtra) + len(",")
	}
	if len(bytes.TrimSpace(first.BeforeExtra)) > 0 {
		return start, end
	}
	start = s.args.StartOffset + len("[")
	if bytes.ContainsRune(first.BeforeExtra, '\n') && len(bytes.TrimSpace(data[end:closing])) == 0 {
		end = closing // a list on lines of its own becomes []
	}
	return start, end
}
