package main

import (
	"context"
	"errors"
	"fmt"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/proof"
	"auditproxy/collector/store"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/evidence"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"
)

const proveLong = `Print the proof of one record: the record, the first record of its session, proofs
that both are in a tree that the session signed and, with a central log, the proof
that this signature is in the log. auditproxy verify-proof checks it, with the keys of
the host and the log from elsewhere and nothing else: no other record is in it.

The exit code is 1 if there is no such record, and 2 if no checkpoint covers it yet,
or the session has no evidence.`

func newProveCmd(a *app) *cobra.Command {
	var place string
	cmd := &cobra.Command{
		Use:     "prove RECORD_ID",
		Short:   "print the proof of one record",
		Long:    proveLong,
		Example: "  auditcollector prove 019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e > record.proof",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return fmt.Errorf("%q is not the id of a record", args[0])
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				return a.prove(ctx, cfg, s, id, place)
			})
		},
	}
	cmd.Flags().StringVar(&place, "log", "", "prove with the central log in this `DIR` or at this address; by default this collector's own, if it is here")
	return cmd
}

func (a *app) prove(ctx context.Context, cfg config, s *store.Store, id uuid.UUID, place string) error {
	p, err := proof.NewSource(s.DB()).Prove(ctx, id)
	switch {
	case errors.Is(err, proof.ErrNotFound):
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("proving record %q: %w", id, err)}
	case err != nil:
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("proving record %q: %w", id, err)}
	}
	own := place == ""
	if own {
		place = cfg.ownLog()
	}
	if place != "" {
		p.Log, err = proveInLog(ctx, place, p.Checkpoint)
		if err != nil && !own {
			return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("proving record %q: %w", id, err)}
		}
		if err != nil { // the proof is one without it
			fmt.Fprintf(a.stderr, "auditcollector: the proof is without the central log: %v\n", err)
		}
	}
	_, err = a.stdout.Write(p.Text())
	return err
}

// proveInLog proves that a session's checkpoint is in a log. Who trusts the log
// checks its signatures.
func proveInLog(ctx context.Context, place string, checkpoint []byte) (*evidence.LogProof, error) {
	r, err := tiles.Open(place)
	if err != nil {
		return nil, err
	}
	var missing error
	for _, read := range []func(context.Context) ([]byte, error){r.Witnessed, r.Checkpoint} {
		signed, err := read(ctx)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		c, err := evidence.ReadCheckpoint(signed)
		if err != nil {
			return nil, err
		}
		tree := tlog.Tree{N: c.Size, Hash: c.Root}
		index, found, err := r.Find(ctx, tree, evidence.Leaf(checkpoint))
		if err != nil {
			return nil, err
		}
		if !found {
			missing = errors.New("the session's checkpoint is not in the log")
			continue
		}
		path, err := r.InclusionProof(ctx, tree, index, c.Size)
		if err != nil {
			return nil, err
		}
		return &evidence.LogProof{Path: evidence.Proof{Index: index, Path: path}, Checkpoint: signed}, nil
	}
	return nil, missing
}

func newEvidenceCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "evidence", Short: "show what signs the central log"}
	cmd.AddCommand(&cobra.Command{
		Use:   "key",
		Short: "print the line of a trust file that names this collector's log",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			key, err := evidencereport.ReadKey(cfg.evidence.dir(cfg.localDir) + ".key.pub")
			if err != nil {
				return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("the log has no key yet, auditcollector run makes it: %w", err)}
			}
			_, err = fmt.Fprintln(a.stdout, "log "+key)
			return err
		},
	})
	return cmd
}
