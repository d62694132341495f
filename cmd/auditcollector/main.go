// Command auditcollector loads the records of auditproxy into ClickHouse, from
// Kafka or from the spools of this machine, and queries them there.
//
// The files, from the top: main, run, receivers, rules, review, policy, query,
// export, verify, prove, verification, lasting, knownlog, erase, hold, retain, letters,
// offer, exports, alerts, smallfile, evidencelog, runname, store, engine, config,
// reviewconfig, evidenceconfig, clusterconfig, checker, app.
package main

import (
	"context"
	"fmt"
	"os"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/brokers"

	"github.com/spf13/cobra"
)

// systemConfig is the administrator's file. No flag and no variable moves it.
const systemConfig = "/etc/auditcollector/config.yaml"

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), systemConfig: systemConfig}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// run executes args and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	brokers.BoundBatches()
	// systemd's $STATE_DIRECTORY is this program's own, not the proxy's.
	a.keys = collectorKeys(cli.StateDir("auditcollector", a.env, os.Getuid()), cli.UserStateDir("auditproxy", a.env, os.Getuid()))
	root := newRootCmd(a)
	cli.CompleteFlags(root, a.keys, args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return cli.Execute(ctx, root, args, func(message error) {
		fmt.Fprintln(a.stderr, terminal.EscapeMessage("auditcollector: "+message.Error()))
	})
}

const rootLong = `auditcollector takes the records of auditproxy to ClickHouse: from Kafka, or with
no brokers configured from the spools on this machine. With no ClickHouse
configured it starts an engine of its own.

Values come from /etc/auditcollector/config.yaml, then from --config or
~/.config/auditcollector/config.yaml, then from variables such as
AUDITCOLLECTOR_KAFKA_BROKERS, then from flags; later ones win, except over what
/etc/auditcollector/config.yaml lists under "enforce". Lists are separated by
commas.`

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "auditcollector COMMAND",
		Short: "bring the records of auditproxy into ClickHouse",
		Long:  rootLong,
	}
	// In the order of the table, which groups related commands.
	root.Flags().SortFlags = false
	root.PersistentFlags().SortFlags = false
	cli.AddFlags(root.PersistentFlags(), a.keys)
	a.flags = root.PersistentFlags()
	root.AddCommand(newRunCmd(a), newMigrateCmd(a), newDeadLettersCmd(a), newRetainCmd(a), newHoldCmd(a), newEraseCmd(a), newVerifyCmd(a), newProveCmd(a), newEvidenceCmd(a), newQueryCmd(a), newExportCmd(a), newPolicyCmd(a), newReviewCmd(a), newRulesCmd(a), newReceiversCmd(a), newEngineCmd(a), cli.NewVersionCmd(a.stdout))
	cli.SetUsage(root, a.keys)
	return root
}
