// An MCP client on @modelcontextprotocol/sdk that answers questions by a script.
// usage: node typescript_sdk_client.mjs PACKAGES SCRIPT SERVER...
import { createRequire } from 'node:module';
import { answer, packages, run, script, server } from './script.mjs';

const require = createRequire(packages + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema, McpError } = require('@modelcontextprotocol/sdk/types.js');

const client = new Client({ name: 'client', version: '1' }, { capabilities: script.silent ? {} : { elicitation: {} } });
if (!script.silent) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params, (code, text) => new McpError(code, text)));
}
const transport = new StdioClientTransport(server);
// The SDK asks for its newest version; the script may ask for an older one.
const send = transport.send.bind(transport);
transport.send = (message) => {
  if (message.method === 'initialize') {
    message.params.protocolVersion = script.version;
  }
  return send(message);
};
let version;
transport.setProtocolVersion = (v) => (version = v);
await client.connect(transport);
await run(version, (params, options) => client.callTool(params, undefined, options));
await client.close();
process.exit(0); // a question may still be open
