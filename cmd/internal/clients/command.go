package clients

import (
	"bytes"
	"cmp"

	udiff "github.com/aymanbagabas/go-udiff"
)

// wrapCommand puts the program at self in front of s. unwrapCommand must restore the
// entry from the result alone. So the old command is moved as it is written. An
// empty list of arguments, a missing one and one with elements get three
// different shapes.
func wrapCommand(data []byte, s server, self string) []udiff.Edit {
	if s.joined {
		at := s.command.StartOffset
		sep := "," + gap(data, at)
		return []udiff.Edit{{Start: at, End: at, New: s.quote(self) + sep + `"--"` + sep}}
	}
	command := string(data[s.command.StartOffset:s.command.EndOffset])
	edits := []udiff.Edit{{Start: s.command.StartOffset, End: s.command.EndOffset, New: s.quote(self)}}
	switch args := s.elements(); {
	case s.args.Value == nil:
		at := s.newList.at
		return append(edits, udiff.Edit{Start: at, End: at, New: newArgs(s, command)})
	case len(args) == 0:
		at := s.args.StartOffset + len("[")
		return append(edits, udiff.Edit{Start: at, End: at, New: ` "--", ` + command})
	default:
		at := args[0].StartOffset
		sep := cmp.Or(s.bullet, ","+gap(data, at))
		return append(edits, udiff.Edit{Start: at, End: at, New: `"--"` + sep + command + sep})
	}
}

// newArgs is the member that a server without arguments gets after its command.
func newArgs(s server, command string) string { return s.newList.text + `["--", ` + command + `]` }

// unwrapCommand reverses wrapCommand, also where the server has been edited since:
// flags of the proxy, or the server's arguments changed, added or removed.
func unwrapCommand(data []byte, s server) []udiff.Edit {
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
	case s.bullet != "":
		before := bytes.TrimRight(data[:s.args.StartOffset], " \r\n")
		remove = udiff.Edit{Start: len(before), End: old.EndOffset, New: " []"}
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
