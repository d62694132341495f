// An MCP server on @modelcontextprotocol/sdk: every tool name is a tool.
// usage: node typescript_sdk.mjs PACKAGES JOURNAL
import { createRequire } from 'node:module';
import { execute, tools } from './journal.mjs';

const [packages, journal] = process.argv.slice(2);
const require = createRequire(packages + '/package.json');
const { Server } = require('@modelcontextprotocol/sdk/server/index.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { CallToolRequestSchema, ListToolsRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

const server = new Server({ name: 'peer', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => execute(journal, params.name, params.arguments));
await server.connect(new StdioServerTransport());
