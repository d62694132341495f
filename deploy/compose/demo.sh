#!/bin/sh
# Plays one agent: libtmux-mcp behind the proxy, and a client's messages.
# Its standard input stays open until the last call can have its answer.
set -eu
cd "$(dirname "$0")"
export TMUX_TMPDIR="${TMPDIR:-/tmp}" LIBTMUX_SOCKET=demo SHELL=/bin/sh
export FASTMCP_SHOW_SERVER_BANNER=false FASTMCP_CHECK_FOR_UPDATES=off FASTMCP_LOG_LEVEL=CRITICAL
tmux -L demo -f /dev/null new-session -d -s demo -x 100 -y 30
{
	cat demo.jsonl
	sleep "${DEMO_SECONDS:-15}"
} | auditproxy -- libtmux-mcp >/dev/null
tmux -L demo kill-server
auditproxy log
