import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Sends an operation and hangs up after so long; whether an answer had begun by then. */
export async function hangUp(url: string, query: string, variables: object, afterMs: number): Promise<boolean> {
  const call = request(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // A connection of its own, which goes with the caller.
    agent: false,
  });
  let answered = false;
  call.on('error', () => {});
  call.on('response', (response) => {
    answered = true;
    response.on('error', () => {}).resume();
  });
  const closed = new Promise((resolve) => call.once('close', resolve));
  call.end(JSON.stringify({ query, variables }));
  await Promise.race([closed, sleep(afterMs)]);
  call.destroy();
  await closed;
  return answered;
}
