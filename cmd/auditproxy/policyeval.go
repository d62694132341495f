package main

import (
	"io"
	"os"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"

	"github.com/spf13/cobra"
)

const policyEvalLong = `Read calls from standard input, one JSON object a line, and print the risk of
each, what its arguments do and, with a policy, what the policy decides.

A line has the members tool and arguments, and may have definition (the tool's
entry in the answer to tools/list, which later lines know of operations of that
tool), at_ms (Unix milliseconds), cwd, home and upstream (how the server answers:
ok, rpc_error, is_error or none). Counters of limits begin at zero and last for the
run. Nothing is run and nothing is recorded. A call that two servers could read
differently, such as one with two tools or duplicate names, is denied, as by the proxy.

The exit code is 2 if the policy does not load, or a line cannot be read.`

const policyEvalExample = `  echo '{"tool":"send_keys","arguments":{"keys":"rm -rf /"}}' | auditproxy policy eval
  auditproxy policy eval --policy policy.yaml --format json < calls.jsonl`

func newPolicyEvalCmd(a *app) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:     "eval",
		Short:   "print the risk of calls and what a policy decides about them",
		Long:    policyEvalLong,
		Example: policyEvalExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.evalPolicy(file, format == "json")
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`policy` to decide by: a file, or preset:NAME")
	cmd.RegisterFlagCompletionFunc("policy", replay.CompletePolicy) // the command has no other argument
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) evalPolicy(file string, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	r := risk.Config{Home: a.getenv("HOME"), Own: a.ownFiles(cfg), Readlink: readlink, Text: a.messages().AppendText}
	r.Cwd, _ = os.Getwd() // "" is unknown
	var l gate.Loaded
	if file != "" {
		l, err = gate.LoadNamed(file, r)
	} else {
		l, err = gate.Config{Risk: r}.Load()
	}
	if err != nil {
		return err
	}
	return gate.Eval(a.stdin, l, wire.IsAmbiguous, func(tool string, e gate.Evaluation) error {
		e.Reason = a.cleanText(e.Reason)
		if asJSON {
			return terminal.PrintJSON(a.stdout, e)
		}
		_, err := io.WriteString(a.stdout, terminal.EscapeLine(tool+"  "+e.String())+"\n")
		return err
	})
}
