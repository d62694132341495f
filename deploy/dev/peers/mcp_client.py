"""An MCP client on the Python SDK that answers questions by a script.

usage: mcp_client.py SCRIPT SERVER...

Works with mcp 1 and mcp 2, which has a client of its own for 2026-07-28.
"""

import json
import os
import sys

import anyio
import anyio.to_thread
import mcp.client.session
from mcp import types
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

script = json.loads(sys.argv[1])
server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))
answers = iter(script["answers"])


def show(**line):
    print(json.dumps(line), flush=True)


async def answer(_context, params):
    own = params.message == "The server asks." and script.get("own")
    how = own or next(answers, "never")
    show(event="asked", message=params.message, how=how)
    if how == "error":
        return types.ErrorData(code=-32601, message="Method not found")
    if how in ("decline", "cancel"):
        return types.ElicitResult(action=how)
    if how == "late":
        await anyio.to_thread.run_sync(sys.stdin.readline)  # the test writes a line
    elif how not in ("once", "session", "deny", "empty"):
        await anyio.sleep_forever()
    decision = {"session": "allow for this session", "deny": "deny"}.get(how, "allow once")
    return types.ElicitResult(action="accept", content={} if how == "empty" else {"decision": decision})


async def run(version, call_tool):
    show(event="connected", version=version)

    async def one(n, call):
        running.add(n)
        try:
            result = await call_tool(call["tool"], call["arguments"])
            result = result.model_dump(by_alias=True)
            text = "".join(c.get("text", "") for c in result["content"])
            show(event="answered", call=n, text=text, is_error=bool(result.get("isError")))
        except Exception as e:
            show(event="failed", call=n, text=str(e))
        running.discard(n)  # not where the SDK's own tasks end this one

    if script.get("at_once"):
        async with anyio.create_task_group() as group:
            for n, call in enumerate(script["calls"]):
                group.start_soon(one, n, call)
        return
    for n, call in enumerate(script["calls"]):
        await one(n, call)


async def session():
    callback = {} if script.get("silent") else {"elicitation_callback": answer}
    if script["version"] >= "2026-07-28":
        from mcp.client import Client

        async with Client(stdio_client(server), mode=script["version"], **callback) as client:
            await run(client.protocol_version, client.call_tool)
        os._exit(0)  # a line may still be awaited
    # The SDK asks for its newest version; the script may ask for an older one.
    for module in (types, mcp.client.session):
        for name in ("LATEST_PROTOCOL_VERSION", "LATEST_HANDSHAKE_VERSION"):
            if hasattr(module, name):
                setattr(module, name, script["version"])
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer, **callback) as client:
        started = await client.initialize()
        await run(started.model_dump(by_alias=True)["protocolVersion"], client.call_tool)
        os._exit(0)  # a question may still be open


running = set()  # calls
try:
    anyio.run(session)
except Exception as e:  # as where the server ends before it has read an answer
    if not running:
        raise
    for n in running:
        show(event="failed", call=n, text=str(e))
