package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/redact"
	"auditproxy/schemas/jsontext"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const digestLong = `Print the digest that records have in place of a value, read from standard
input, with the key and the profile of the effective configuration. Anyone who
can read the key can look a value up; a digest cannot be reversed.

Every byte of the input counts, also a trailing newline; printf '%s' writes none.
At a terminal the command asks for the value and does not show it.`

const digestExample = `  printf '%s' "$PASSWORD" | auditproxy digest
  auditproxy log --grep "$(printf '%s' "$PASSWORD" | auditproxy digest)"
  auditproxy digest --domain error --json < message.txt`

// digestDomains are the domains whose values a person can have.
var digestDomains = []struct {
	name   string
	domain redact.Domain
}{
	{"argument", redact.Argument},
	{"error", redact.ErrorText},
	{"command", redact.CommandLine},
}

func newDigestCmd(a *app) *cobra.Command {
	var names []string
	for _, d := range digestDomains {
		names = append(names, d.name)
	}
	var domain string
	var trim, asJSON bool
	cmd := &cobra.Command{
		Use:     "digest",
		Short:   "print the digest of a value, to look it up in the records",
		Long:    digestLong,
		Example: digestExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				// Not quoted: it may be the secret.
				return errors.New("digest reads the value from standard input: on a command line others see it, and the shell keeps it; printf '%s' \"$VALUE\" | auditproxy digest")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			i := slices.Index(names, domain)
			if i < 0 {
				return fmt.Errorf("--domain is %q, want %s", domain, strings.Join(names, ", "))
			}
			return a.digest(digestDomains[i].domain, trim, asJSON)
		},
	}
	cmd.Flags().StringVar(&domain, "domain", names[0], "`what` the value is of: "+strings.Join(names, ", "))
	cmd.Flags().BoolVar(&trim, "trim", false, "strip one trailing newline")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the digest as in the records")
	cmd.RegisterFlagCompletionFunc("domain", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) digest(domain redact.Domain, trim, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	r, err := cfg.redactor(false)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; nothing has been recorded with this configuration yet", err)
	}
	if err != nil {
		return err
	}
	value, err := a.readValue()
	if err != nil {
		return fmt.Errorf("reading the value: %w", err)
	}
	if trim {
		value = bytes.TrimSuffix(value, []byte("\n"))
	}
	digest := r.AppendDigest(nil, domain, value)
	if !asJSON {
		if digest, err = prefix(digest); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", digest)
	return err
}

// readValue reads all of standard input. Input typed at a terminal is not
// shown, and the key that ends it is not part of the value.
func (a *app) readValue() ([]byte, error) {
	f, ok := a.stdin.(*os.File)
	if !ok || !terminal.IsTerminal(f) {
		return io.ReadAll(a.stdin)
	}
	fmt.Fprint(a.stderr, "Value (not shown): ")
	value, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(a.stderr)
	return value, err
}

// prefix returns the hexadecimal digits of a digest object.
func prefix(digest []byte) (digits []byte, err error) {
	err = jsontext.Members(digest, func(name, value []byte) bool {
		if bytes.HasSuffix(name, []byte("_prefix")) {
			digits = bytes.Trim(value, `"`)
		}
		return true
	})
	if err == nil && digits == nil {
		err = errors.New("the digest has no digits")
	}
	return digits, err
}
