package clients

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"unicode"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"

	udiff "github.com/aymanbagabas/go-udiff"
)

// A Config selects what to rewrite and how to talk to the user.
type Config struct {
	Stdin          io.Reader           // the answer to the question is read from here
	Stdout, Stderr io.Writer           // for the change, and for the question
	Getenv         func(string) string // as os.Getenv
	Say            func(error)         // called for each file that cannot be read or changed
	Colour         bool                // show the change in colours
	Clean          func([]byte) []byte // returns a file without credentials, to be shown

	// Check returns why a wrapped server is not recorded as this program's
	// configuration has it, in words that follow its name; nil: none is checked.
	Check func(Server) []string

	DryRun  bool     // show the changes without making them
	Yes     bool     // make them without asking
	Remote  bool     // wrap servers with a URL too; Unwrap ignores it
	Servers []string // the only servers to change; none: all
}

// A rewrite changes servers in client configurations: it reads all
// configurations, shows the changes, asks once and writes.
type rewrite struct {
	cfg  Config
	verb string
	done string // the verb's participle

	concerns func(server) bool   // whether to change a server that has no problem
	remark   func(server) string // the message about one that is not changed; may be empty
	warning  func(server) string // the message about one that is changed; may be empty
	edits    func(data []byte, s server, self string) []udiff.Edit
}

// A change is the change of one file.
type change struct {
	file    config
	edits   []udiff.Edit
	after   []byte
	servers int // how many are changed
	remote  int // how many of them have a URL
}

// run changes the files at paths, or the known ones that exist. A file that
// cannot be read or changed is named and does not keep the rest from being changed.
func (r *rewrite) run(paths []string) error {
	self, err := selfPath()
	if err != nil {
		return err
	}
	if r.cfg.Remote {
		if err := checkNpx(exec.LookPath); err != nil {
			return err
		}
	}
	files, problems := r.read(paths, self)
	for _, err := range problems {
		r.cfg.Say(err)
	}
	if err := r.checkNames(files); err != nil {
		return err
	}
	changes, unable, err := r.plan(files, self)
	if err != nil {
		return err
	}
	if err := r.show(changes); err != nil {
		return err
	}
	if r.cfg.Remote && slices.ContainsFunc(changes, func(c change) bool { return c.remote > 0 }) {
		if _, err := io.WriteString(r.cfg.Stdout, remoteNotice); err != nil {
			return fmt.Errorf("printing the change: %w", err)
		}
	}
	switch {
	case len(files) == 0: // the problems hold the reason
	case len(changes) == 0:
		fmt.Fprintf(r.cfg.Stdout, "nothing to %s\n", r.verb)
	case !r.cfg.DryRun:
		if err := r.confirm(changes); err != nil {
			return err
		}
		if err := r.write(changes); err != nil {
			return err
		}
	}
	if len(problems) > 0 || unable {
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}

// read returns the configurations at paths, each once, and the problems.
func (r *rewrite) read(paths []string, self string) (files []config, problems []error) {
	named := len(paths) > 0
	if !named {
		for _, f := range existingConfigs(r.cfg.Getenv) {
			paths = append(paths, f.path)
		}
		if len(paths) == 0 {
			return nil, []error{errors.New("found no MCP client's configuration here or in the home directory: name the file")}
		}
	}
	for _, path := range paths {
		c, err := readConfig(path, self)
		c.named = named
		switch {
		case err == nil && named && c.servers == nil:
			problems = append(problems, fmt.Errorf("client configuration %q has no member that %s knows: want \"mcpServers\", \"servers\", \"context_servers\", \"amp.mcpServers\", \"mcp\" with servers, or \"mcpServers\" in \"projects\", with an object; in TOML [mcp_servers.NAME]; in YAML \"extensions\" or \"mcpServers\"", path, r.verb))
		case err != nil:
			problems = append(problems, err)
		case !slices.ContainsFunc(files, func(o config) bool { return o.target == c.target }):
			files = append(files, c)
		}
	}
	return files, problems
}

// checkNames reports the names asked for that no file has.
func (r *rewrite) checkNames(files []config) error {
	var have []string
	for _, f := range files {
		for _, s := range f.servers {
			have = append(have, fmt.Sprintf("%q", s.Name))
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	var missing []string
	for _, name := range r.cfg.Servers {
		if quoted := fmt.Sprintf("%q", name); !slices.Contains(have, quoted) {
			missing = append(missing, quoted)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(have) == 0:
		return fmt.Errorf("no server is called %s: there are no servers", strings.Join(missing, " or "))
	}
	return fmt.Errorf("no server is called %s: there are %s", strings.Join(missing, " or "), strings.Join(have, ", "))
}

// plan chooses the changes and reports each server that is not changed, with
// the reason. It is unable if that server was requested by name, or its file was
// and it has a problem.
func (r *rewrite) plan(files []config, self string) (changes []change, unable bool, err error) {
	for _, f := range files {
		c := change{file: f}
		for _, s := range f.servers {
			named := slices.Contains(r.cfg.Servers, s.Name)
			switch {
			case len(r.cfg.Servers) > 0 && !named:
			case s.Problem == "" && r.concerns(s):
				c.edits = append(c.edits, r.edits(f.data, s, self)...)
				c.servers++
				if warning := r.warning(s); warning != "" {
					fmt.Fprintf(r.cfg.Stdout, "%s: %s %s\n", escape.Text(f.path), s.Label(), warning)
				}
				if s.Remote {
					c.remote++
				}
			case r.remark(s) != "":
				fmt.Fprintf(r.cfg.Stdout, "%s: %s %s\n", escape.Text(f.path), s.Label(), terminal.EscapeMessage(r.remark(s)))
				unable = unable || named && !s.Wrapped || f.named && s.Problem != ""
			}
		}
		if c.servers == 0 {
			continue
		}
		if n := linkCount(f.info); n > 1 {
			fmt.Fprintf(r.cfg.Stdout, "%s: has %d names (hard links), and only this one gets the change: %s the others too\n", escape.Text(f.path), n, r.verb)
		}
		if c.after, err = udiff.ApplyBytes(f.data, c.edits); err != nil {
			return nil, false, fmt.Errorf("changing %q: %w", f.path, err)
		}
		changes = append(changes, c)
	}
	return changes, unable, nil
}

// show prints the changes as a unified diff, without the credentials that such files have:
// what a terminal shows is kept in logs and records.
func (r *rewrite) show(changes []change) error {
	for _, c := range changes {
		before, after := c.cleaned(r.cfg.Clean)
		diff, err := unified(c.file.path, c.file.path+" ("+r.done+")", before, after)
		if err != nil {
			return fmt.Errorf("comparing %q with its change: %w", c.file.path, err)
		}
		if terminal.IsTerminal(r.cfg.Stdout) {
			diff = visible(diff)
		}
		if r.cfg.Colour {
			diff = coloured(diff)
		}
		if _, err := io.WriteString(r.cfg.Stdout, diff); err != nil {
			return fmt.Errorf("printing the change: %w", err)
		}
	}
	return nil
}

// cleaned returns the file before and after the change as they are shown. Each entry of a
// server is cleaned apart from what is around it: neither a name such as "tokens" nor a text
// elsewhere in the file may hide what changes. In TOML and YAML env has many forms.
func (c change) cleaned(clean func([]byte) []byte) (before, after []byte) {
	var cuts []int
	hidden := map[int]bool{} // by where it starts
	for _, s := range c.file.servers {
		cuts = append(cuts, s.bounds(c.file.data)...)
		for _, v := range s.envValues() {
			cuts, hidden[v.StartOffset] = append(cuts, v.StartOffset, v.EndOffset), true
		}
	}
	slices.Sort(cuts)
	from, fromAfter := 0, 0
	for _, at := range append(cuts, len(c.file.data)) {
		atAfter := at
		for _, e := range c.edits {
			if e.Start < at {
				atAfter += len(e.New) - (e.End - e.Start)
			}
		}
		if hidden[from] && from < at {
			before, after = append(before, `"[redacted]"`...), append(after, `"[redacted]"`...)
		} else {
			before, after = append(before, clean(c.file.data[from:at])...), append(after, clean(c.after[fromAfter:atAfter])...)
		}
		from, fromAfter = at, atAfter
	}
	return before, after
}

func unified(from, to string, before, after []byte) (string, error) {
	lines := udiff.Lines(string(before), string(after))
	return udiff.ToUnified(from, to, string(before), lines, udiff.DefaultContextLines)
}

// visible escapes a diff for a terminal: a repository can contain a
// configuration whose comments would move the cursor or turn the text around.
func visible(diff string) string {
	var b strings.Builder
	for _, c := range strings.ReplaceAll(diff, "\r\n", "\n") {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func coloured(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		text, end := strings.CutSuffix(line, "\n")
		colour := ""
		switch text[:min(1, len(text))] {
		case "-":
			colour = "\x1b[31m"
		case "+":
			colour = "\x1b[32m"
		case "@":
			colour = "\x1b[36m"
		}
		if colour != "" {
			text = colour + text + "\x1b[0m"
		}
		b.WriteString(text)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// confirm asks whether to make the changes; it returns nil if so.
func (r *rewrite) confirm(changes []change) error {
	if r.cfg.Yes {
		return nil
	}
	servers := 0
	for _, c := range changes {
		servers += c.servers
	}
	fmt.Fprintf(r.cfg.Stderr, "%s %s in %s? [y/N] ", strings.ToUpper(r.verb[:1])+r.verb[1:], terminal.Count(servers, "server"), terminal.Count(len(changes), "file"))
	answer, err := bufio.NewReader(r.cfg.Stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(r.cfg.Stderr)
		return fmt.Errorf("no answer on standard input; nothing was changed: use --yes to %s without being asked", r.verb)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return cli.ExitError{Code: cli.ExitFound, Err: errors.New("nothing was changed")}
}

// write makes the changes, one file after the other. After a crash or an error
// some files are changed and some are not; each is whole.
func (r *rewrite) write(changes []change) error {
	failed := 0
	for _, c := range changes {
		backup, err := c.file.replace(c.after)
		if err != nil {
			r.cfg.Say(fmt.Errorf("changing %q: %w", c.file.path, err))
			failed++
			continue
		}
		fmt.Fprintf(r.cfg.Stdout, "%s: %s %s, backup in %s\n", escape.Text(c.file.path), r.done, terminal.Count(c.servers, "server"), escape.Text(backup))
	}
	if failed < len(changes) {
		fmt.Fprintln(r.cfg.Stdout, "restart the client to use the changed configuration")
	}
	if failed > 0 {
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}
