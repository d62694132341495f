"""An agent whose MCP client is on the Python SDK, which makes its own spans.

usage: OTEL_EXPORTER_OTLP_ENDPOINT=URL otel_agent.py COUNT SERVER...

Calls the server's tool "safe" COUNT times within one span.
"""

import os
import sys

import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

count = int(sys.argv[1])
server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))


async def session():
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as client:
        await client.initialize()
        with trace.get_tracer("agent").start_as_current_span("agent's task"):
            for n in range(count):
                await client.call_tool("safe", {"n": n})


provider = TracerProvider(resource=Resource.create({"service.name": "agent"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
anyio.run(session)
provider.shutdown()
