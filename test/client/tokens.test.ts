import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createClient, type WaymarkClient } from '../../src/client/index.ts';
import { job, type Script, type ScriptedService, scriptedService } from './scripted-service.ts';

let service: ScriptedService | undefined;
let client: WaymarkClient<unknown> | undefined;

/** A client whose tokens are t1, t2, …, and the ones that came with connections. */
async function connect(script: Script, options: object = {}) {
  const inits: unknown[] = [];
  let n = 0;
  service = await scriptedService({ onInit: ({ authorization }) => inits.push(authorization), ...script });
  client = createClient({ url: service.url, webSocket: WebSocket, token: async () => `t${++n}`, ...options });
  return { client, inits };
}

afterEach(async () => {
  await client?.close();
  await service?.close();
});

const refusal = { errors: [{ message: 'expired', extensions: { code: 'UNAUTHENTICATED' } }], data: null };

async function statesOf(jobs: AsyncIterable<{ state: string }>): Promise<string[]> {
  const states: string[] = [];
  for await (const { state } of jobs) states.push(state);
  return states;
}

describe('a token that is refused', () => {
  test('is asked for once more by a request, whatever it is', async () => {
    const seen: unknown[] = [];
    const { client } = await connect({
      onRequest(_query, _variables, { authorization }) {
        seen.push(authorization);
        return authorization === 'Bearer t2' ? { data: { x: 1 } } : refusal;
      },
    });
    expect(await client.request('{ x }')).toEqual({ x: 1 });
    await expect(client.request('{ x }')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(seen).toEqual(['Bearer t1', 'Bearer t2', 'Bearer t3', 'Bearer t4']);
  });

  test('is asked for once more by a stream, on a new connection', async () => {
    const { client, inits } = await connect({
      onSubscribe(live) {
        if (inits.length === 1) return live.error('UNAUTHENTICATED');
        live.next(job(2, 'COMPLETED'));
        live.complete();
      },
    });
    expect(await statesOf(client.job('job_1').progress())).toEqual(['COMPLETED']);
    expect(inits).toEqual(['Bearer t1', 'Bearer t2']);
  });

  test('twice in a row is an error', async () => {
    const { client, inits } = await connect({ onSubscribe: (live) => live.error('UNAUTHENTICATED') });
    await expect(statesOf(client.job('job_1').progress())).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(inits).toHaveLength(2);
  });

  test('one that does not change is not tried again', async () => {
    const { client, inits } = await connect(
      { onSubscribe: (live) => live.error('UNAUTHENTICATED') },
      { token: 'always' },
    );
    await expect(statesOf(client.job('job_1').progress())).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(inits).toEqual(['Bearer always']);
  });

  test('a socket closed when its token is over comes back with another, and goes on', async () => {
    const { client, inits } = await connect({
      onSubscribe(live) {
        live.next(job(inits.length, inits.length === 3 ? 'COMPLETED' : 'RUNNING'));
        if (inits.length < 3) live.close(4403);
        else live.complete();
      },
    });
    expect((await statesOf(client.job('job_1').progress())).at(-1)).toBe('COMPLETED');
    expect(inits).toEqual(['Bearer t1', 'Bearer t2', 'Bearer t3']);
  });
});
