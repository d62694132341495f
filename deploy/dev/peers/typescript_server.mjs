// An MCP server on @modelcontextprotocol/server: every tool name is a tool.
// usage: node typescript_server.mjs PACKAGES JOURNAL
import { createRequire } from 'node:module';
import { execute, tools } from './journal.mjs';

const [packages, journal] = process.argv.slice(2);
const require = createRequire(packages + '/package.json');
const { Server } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');

serveStdio(() => {
  const server = new Server({ name: 'peer', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('tools/call', ({ params }) => execute(journal, params.name, params.arguments));
  return server;
});
