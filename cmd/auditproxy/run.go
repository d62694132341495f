package main

import (
	"context"
	"os/exec"

	"auditproxy/cmd/internal/cli"

	"github.com/spf13/cobra"
)

const rootLong = `auditproxy runs between an MCP client and a server that uses standard input and
output. It forwards every byte unchanged and writes one record of every call,
with secrets replaced by digests, to this machine's disk.

Values come from /etc/auditproxy/config.yaml, then from --config or
~/.config/auditproxy/config.yaml, then from variables such as
AUDITPROXY_REDACT_PROFILE, then from flags; later ones win, except over what
/etc/auditproxy/config.yaml lists under "enforce". "auditproxy doctor" shows
the effective configuration. Lists are separated by commas.`

const rootExample = `  auditproxy wrap                        wrap your clients' servers
  auditproxy -- libtmux-mcp              what a client's configuration then runs
  auditproxy --durability always -- npx -y @example/server
  auditproxy log -f                      watch the calls
  auditproxy doctor                      see what is wrapped, and problems`

func newRootCmd(a *app) *cobra.Command {
	root := newProxyCmd(a, a.wrapServer)
	root.Short, root.Long, root.Example = "wrap an MCP server and keep a record of every call", rootLong, rootExample
	root.AddCommand(newLogCmd(a), newShowCmd(a), newVerifyCmd(a), newProveCmd(a), newVerifyProofCmd(a), newEvidenceCmd(a), newDigestCmd(a), newDoctorCmd(a), newRecoverCmd(a),
		newShipCmd(a), newWrapCmd(a), newUnwrapCmd(a), newPolicyCmd(a), newApprovalsCmd(a), cli.NewVersionCmd(a.stdout))
	cli.SetUsage(root, a.keys)
	return root
}

// wrapServer does the main job: auditproxy [flags] -- COMMAND [ARGUMENT...].
func (a *app) wrapServer(ctx context.Context, l launch) error {
	path, err := exec.LookPath(l.args[0])
	if err != nil {
		return cannotStart(l.args[0], err)
	}
	return runProxy(ctx, a, l.cfg, path, l.dir, l.args)
}
