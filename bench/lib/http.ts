import { Agent, request } from 'node:http';

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Posts a GraphQL operation over connections that are kept. @throws when the answer is not 200 or has errors */
export function post(url: string, operation: { query: string; variables?: unknown }): Promise<string> {
  const body = JSON.stringify(operation);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const call = request(url, { agent, method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        if (response.statusCode === 200 && !text.includes('"errors":')) resolve(text);
        else reject(new Error(`${response.statusCode}: ${text.slice(0, 300)}`));
      });
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** Calls a second with so many under way at any moment. */
export async function callsPerSecond(call: () => Promise<unknown>, inFlight: number, ms: number): Promise<number> {
  let done = 0;
  const start = performance.now();
  const caller = async () => {
    while (performance.now() - start < ms) {
      await call();
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  return done / ((performance.now() - start) / 1_000);
}
