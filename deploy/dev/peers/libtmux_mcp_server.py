"""libtmux-mcp with what it does on its own written down.

usage: libtmux_mcp_server.py [--audit FILE] [--journal FILE]

--audit switches on the server's audit logger, which nothing else does: FILE
gets one JSON object for each of its lines, the line itself under "line" and
the values that were formatted into it beside it.

--journal does no tmux at all: FILE gets the name and the arguments of each tool
called, and the answer is "done".
"""

import argparse
import json
import logging

import libtmux_mcp
from libtmux_mcp.server import mcp

from journal import Journal

# The order of the arguments of the two calls in libtmux_mcp.middleware.
FIELDS = {
    "ok": ("tool", "duration_ms", "client_id", "request_id", "args"),
    "error": ("tool", "error_type", "duration_ms", "client_id", "request_id", "args"),
}


class AuditFile(logging.FileHandler):
    def format(self, record):
        outcome = "error" if "outcome=error" in record.msg else "ok"
        values = dict(zip(FIELDS[outcome], record.args, strict=True))
        return json.dumps({"line": record.getMessage(), "outcome": outcome, **values})


def write_audit(path):
    logger = logging.getLogger("libtmux_mcp.audit")
    logger.setLevel(logging.INFO)
    logger.addHandler(AuditFile(path))


def write_journal(path):
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools.base import ToolResult

    journal = Journal(path)

    class Executed(Middleware):
        async def on_call_tool(self, context, call_next):
            journal.note(context.message.name, context.message.arguments)
            return ToolResult(content="done")

    mcp.middleware.insert(0, Executed())


parser = argparse.ArgumentParser()
parser.add_argument("--audit")
parser.add_argument("--journal")
options = parser.parse_args()
if options.audit:
    write_audit(options.audit)
if options.journal:
    write_journal(options.journal)
libtmux_mcp.main([])
