package main

import (
	"errors"
	"fmt"
	"io/fs"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool/chain"

	"github.com/spf13/cobra"
)

func newEvidenceCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "keys of the records' evidence",
	}
	cmd.AddCommand(newEvidenceKeyCmd(a))
	return cmd
}

const evidenceKeyLong = `Print the public half of this host's key, as a line of a trust file. It is needed to
verify records of this host. Send it another way than the records.

The first session makes the key, in evidence/host.key of the spool directory, unless
evidence.key_file names another one.`

func newEvidenceKeyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "key",
		Short:   "print this host's public key for a trust file",
		Long:    evidenceKeyLong,
		Example: "  auditproxy evidence key >> trusted-keys",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			_, key, err := chain.Key(chain.Config{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile})
			if errors.Is(err, fs.ErrNotExist) && cfg.evidenceKeyFile == "" {
				return fmt.Errorf("there is no key in %q yet: the first session makes it", cfg.spoolDir)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "host %s\n", escape.Text(key))
			return err
		},
	}
}
