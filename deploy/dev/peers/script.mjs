// What the clients in TypeScript share: the script, and the lines they print.
import { createInterface } from 'node:readline';

const [, , packages, text, ...command] = process.argv;
export { packages };
export const script = JSON.parse(text);
export const server = { command: command[0], args: command.slice(1), env: process.env, stderr: 'inherit' };

export function print(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

const never = new Promise(() => {});
let asked = 0;

// line returns when the test writes a line.
const line = () => new Promise((resolve) => createInterface({ input: process.stdin }).once('line', resolve));

// answer answers a question as the script says. error makes the SDK's own error.
export async function answer(params, error) {
  const how = params.message === 'The server asks.' && script.own ? script.own : script.answers[asked++];
  print({ event: 'asked', message: params.message, how });
  const accept = (decision) => ({ action: 'accept', content: { decision } });
  switch (how) {
    case 'once':
      return accept('allow once');
    case 'session':
      return accept('allow for this session');
    case 'deny':
      return accept('deny');
    case 'empty':
      return { action: 'accept', content: {} };
    case 'decline':
    case 'cancel':
      return { action: how };
    case 'error':
      throw error(-32601, 'Method not found');
    case 'late':
      await line();
      return accept('allow once');
    default:
      return never;
  }
}

// run makes the calls, one after the other or all at once.
export async function run(version, call) {
  print({ event: 'connected', version });
  const one = async ({ tool, arguments: args }, n) => {
    try {
      const { content, isError } = await call({ name: tool, arguments: args }, { timeout: 600_000 });
      print({ event: 'answered', call: n, text: content.map(({ text }) => text).join(''), is_error: isError ?? false });
    } catch (e) {
      print({ event: 'failed', call: n, text: e.message });
    }
  };
  if (script.at_once) {
    await Promise.all(script.calls.map(one));
    return;
  }
  for (const [n, call] of script.calls.entries()) {
    await one(call, n);
  }
}
