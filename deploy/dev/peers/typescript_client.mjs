// An MCP client on @modelcontextprotocol/client that answers questions by a
// script.
// usage: node typescript_client.mjs PACKAGES SCRIPT SERVER...
import { createRequire } from 'node:module';
import { answer, packages, run, script, server } from './script.mjs';

const require = createRequire(packages + '/package.json');
const { Client, ProtocolError } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const modern = script.version >= '2026-07-28';
const client = new Client(
  { name: 'client', version: '1' },
  {
    capabilities: script.silent ? {} : { elicitation: { form: {}, url: {} } },
    versionNegotiation: { mode: modern ? { pin: script.version } : 'legacy' },
    ...(!modern && { supportedProtocolVersions: [script.version] }),
  },
);
if (!script.silent) {
  client.setRequestHandler('elicitation/create', ({ params }) => answer(params, (code, text) => new ProtocolError(code, text)));
}
await client.connect(new StdioClientTransport(server));
await run(client.getNegotiatedProtocolVersion?.() ?? script.version, (params, options) => client.callTool(params, options));
await client.close();
process.exit(0); // a question may still be open
