import { appendFileSync } from 'node:fs';

// execute notes the call outside this process, then answers it.
export function execute(journal, tool) {
  appendFileSync(journal, JSON.stringify(tool) + '\n');
  return { content: [{ type: 'text', text: 'done' }] };
}

export const tools = ['evil', 'safe'].map((name) => ({ name, inputSchema: { type: 'object' } }));
