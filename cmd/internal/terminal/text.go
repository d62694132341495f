// Package terminal formats the programs' output for a person at a terminal:
// styles and widths of text, a progress bar, points in time as people write
// them. Its output cannot move a cursor, even with untrusted words.
//
// The files, from the top: progress, shorten, text, line, width, time.
package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"auditproxy/schemas/escape"

	"golang.org/x/term"
)

// IsTerminal reports whether stream, a reader or a writer, is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours reports whether output to w may have colours (https://no-color.org).
func Colours(w io.Writer, getenv func(string) string) bool {
	return IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Width returns how many columns the terminal of stream has; 0 if that is not
// known.
func Width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// EscapeMessage escapes what would control a terminal in a message. Line feeds
// stay, and so do backslashes: quotes in the message are escaped already.
func EscapeMessage(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(escape.Text(line), `\\`, `\`)
	}
	return strings.Join(lines, "\n")
}

// EscapeLine is EscapeMessage for a message whose line feeds are not the program's own.
func EscapeLine(message string) string {
	return strings.ReplaceAll(EscapeMessage(message), "\n", `\n`)
}

// Count returns a number with its noun.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// PrintJSON writes v as one line, on which no character disturbs a terminal.
func PrintJSON(w io.Writer, v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // it would write <secret> as \u003csecret\u003e
	if err := e.Encode(v); err != nil {
		return err
	}
	text := escape.AppendJSON(nil, bytes.TrimSuffix(line.Bytes(), []byte("\n")))
	_, err := w.Write(append(text, '\n'))
	return err
}

// PrintList writes a line of JSON for each item if format is json, and otherwise a
// table whose first line is heads. Row returns the cells of an item, which are escaped.
func PrintList[T any](w io.Writer, list []T, format, heads string, row func(T) []string) error {
	out := bufio.NewWriter(w)
	if format == "json" {
		for _, item := range list {
			if err := PrintJSON(out, item); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(list) > 0 {
		fmt.Fprintln(t, heads)
	}
	for _, item := range list {
		cells := row(item)
		for i := range cells {
			cells[i] = escape.Text(cells[i])
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return out.Flush()
}
