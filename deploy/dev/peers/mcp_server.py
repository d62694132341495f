"""An MCP server on the Python SDK: every tool name is a tool.

usage: mcp_server.py JOURNAL

Works with mcp 1 and mcp 2, whose low-level servers differ only in how a
handler is registered.
"""

import sys

import anyio
import mcp.server.stdio
from mcp import types
from mcp.server.lowlevel import Server

from journal import Journal

journal = Journal(sys.argv[1])
TOOLS = types.ListToolsResult.model_validate(
    {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("evil", "safe")]}
)


def execute(params):
    journal.note(params.name, params.arguments)
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": "done"}]})


def server_1():
    async def list_tools(_request):
        return types.ServerResult(TOOLS)

    async def call_tool(request):
        return types.ServerResult(execute(request.params))

    server = Server("peer", "1")
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


def server_2():
    async def list_tools(_context, _params):
        return TOOLS

    async def call_tool(_context, params):
        return execute(params)

    return Server("peer", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def main():
    server = server_1() if hasattr(Server, "call_tool") else server_2()
    async with mcp.server.stdio.stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


anyio.run(main)
