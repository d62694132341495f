package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/cmd/internal/verify"
	"auditproxy/cmd/internal/view"

	"github.com/spf13/cobra"
)

const proveLong = `Print the proof of one record: the record, the first record of its session, and
proofs that both are in a tree that the session signed. auditproxy verify-proof
checks it, with the host's key from elsewhere and nothing else: no other record is
in it. The beginning of a record's id is enough where no other record's starts like
it; then all records are read, and with a whole id only those that it needs.

The exit code is 1 if there is no such record, and 2 if no checkpoint covers it yet,
or the session has no evidence.`

func newProveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "prove RECORD_ID",
		Short:   "print the proof of one record",
		Long:    proveLong,
		Example: "  auditproxy prove 019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e > record.proof",
		Args:    oneRecord,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			ctx, stop := cli.Interruptible(cmd.Context())
			defer stop()
			entries, err := view.List(cfg.spoolDir, "")
			if err != nil {
				return fmt.Errorf("proving: %w", err)
			}
			return verify.Prove(ctx, verify.Config{Dir: cfg.spoolDir, Stdout: a.stdout, Stderr: a.stderr}, args[0], entries)
		},
	}
}

// oneRecord is the Args of a command about a record.
func oneRecord(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the id of one record, got %d; auditproxy log -o wide shows them as record=…", len(args))
	}
	return nil
}

const verifyProofLong = `Check the proof of one record, as auditproxy prove or auditcollector prove prints
it, and say what it proves. The trust file has a line "host KEY" for each host that
is trusted. For proofs with a central log it also names the log (auditcollector
evidence key prints the line), its witnesses, and how many of them must have signed.

The name - is standard input.

The exit code is 0 if the record is the one that a trusted host wrote, 1 if the proof
is wrong, and 2 if it is in order but of a host or a log that is not trusted, or without
the log that a quorum of witnesses must have signed.`

// maxProof is the limit on a proof in bytes: two records and what proves them.
const maxProof = 2 << 20

func newVerifyProofCmd(a *app) *cobra.Command {
	var trust, format string
	cmd := &cobra.Command{
		Use:     "verify-proof FILE",
		Short:   "check the proof of one record",
		Long:    verifyProofLong,
		Example: "  auditproxy verify-proof record.proof --trust trusted-keys\n  auditproxy verify-proof record.proof --trust trusted-keys --format json | jq -r .record",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the file of one proof, got %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.verifyProof(args[0], trust, format == "json")
		},
	}
	cmd.Flags().StringVar(&trust, "trust", "", "`FILE` with the keys to trust")
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) verifyProof(file, trustFile string, asJSON bool) error {
	trust, err := evidencereport.ReadTrust(trustFile)
	if err != nil {
		return fmt.Errorf("verifying a proof: %w", err)
	}
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("verifying a proof: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxProof+1))
	if err == nil && len(text) > maxProof {
		err = errors.New("it is longer than 2 MiB")
	}
	if err != nil {
		return fmt.Errorf("verifying the proof %q: %w", file, err)
	}
	return verify.CheckProof(verify.Config{JSON: asJSON, Stdout: a.stdout}, text, trust)
}
