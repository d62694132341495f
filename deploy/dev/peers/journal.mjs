import { appendFileSync } from 'node:fs';

// text is JSON, "?" for what is too deep to be written.
function text(value) {
  try {
    return JSON.stringify(value ?? null);
  } catch {
    return '"?"';
  }
}

// execute notes the call outside this process, then answers it.
export function execute(journal, tool, args) {
  appendFileSync(journal, `[${text(tool)},${text(args)}]\n`);
  return { content: [{ type: 'text', text: 'done' }] };
}

export const tools = ['evil', 'safe'].map((name) => ({ name, inputSchema: { type: 'object' } }));
