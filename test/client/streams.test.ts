import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createClient, type RequestError, type WaymarkClient } from '../../src/client/index.ts';
import { event, job, type Live, type Script, type ScriptedService, scriptedService } from './scripted-service.ts';

let service: ScriptedService | undefined;
let client: WaymarkClient<unknown> | undefined;

async function connect(script: Script, onConnection?: (state: string) => void): Promise<WaymarkClient<unknown>> {
  service = await scriptedService(script);
  client = createClient({ url: service.url, webSocket: WebSocket, ...(onConnection ? { onConnection } : {}) });
  return client;
}

afterEach(async () => {
  await client?.close();
  await service?.close();
});

const LAST = 40;
/** Sends what is behind `after`, as the real service does, at most `most` events. */
function replay(live: Live, most = LAST): void {
  const after = Number(live.variables.after);
  for (let seq = after + 1; seq <= Math.min(LAST, after + most); seq++)
    live.next(event(seq, seq === LAST ? 'JobCompleted' : undefined));
}
const ended = (lastSeq = LAST) => ({ data: { job: { isTerminal: true, lastSeq } } });

async function seqsOf(events: AsyncIterable<{ seq: number }>): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of events) seqs.push(seq);
  return seqs;
}

const all = Array.from({ length: LAST }, (_, i) => i + 1);

describe('events', () => {
  test('each comes once and in order, wherever the connection breaks', async () => {
    const breaks = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 15 }), fc.constantFrom('cut', 1012, 'complete', 'repeat')),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(breaks, async (plan) => {
        let turn = 0;
        const c = await connect({
          onRequest: () => ({ data: { job: { isTerminal: false, lastSeq: LAST } } }),
          onSubscribe(live) {
            const [count, how] = plan[turn++] ?? [LAST, 'end'];
            // A service that repeats what was sent already must not be believed twice.
            if (how === 'repeat' && Number(live.variables.after) > 0) live.next(event(Number(live.variables.after)));
            replay(live, Number(count));
            if (how === 'cut') live.cut();
            else if (how === 1012) live.close(1012);
            else if (how === 'repeat') live.cut();
            else live.complete();
          },
        });
        expect(await seqsOf(c.job('job_1').events())).toEqual(all);
        await c.close();
        await service?.close();
      }),
      { numRuns: 8 },
    );
  }, 30_000);

  test('reading behind the last event of a finished job ends at once', async () => {
    const c = await connect({ onRequest: () => ended(), onSubscribe: (live) => live.complete() });
    expect(await seqsOf(c.job('job_1').events({ after: LAST }))).toEqual([]);
    expect(service?.subscriptions).toHaveLength(1);
  });

  test('a job that is not there is an error, not an endless wait', async () => {
    const c = await connect({ onSubscribe: (live) => live.error('NOT_FOUND') });
    await expect(seqsOf(c.job('job_1').events())).rejects.toMatchObject({ name: 'RequestError', code: 'NOT_FOUND' });
  });

  test('a service that is away for a moment is asked again', async () => {
    let tries = 0;
    const c = await connect({
      onSubscribe(live) {
        if (++tries === 1) return live.error('UNAVAILABLE');
        if (tries === 2) return live.error('LIMIT_EXCEEDED', { retryAfterMs: 20 });
        if (tries === 3) return live.close(4500);
        replay(live);
        live.complete();
      },
    });
    expect(await seqsOf(c.job('job_1').events())).toEqual(all);
  });

  test('leaving the loop ends the subscription', async () => {
    const c = await connect({ onSubscribe: (live) => live.next(event(1)) });
    for await (const { seq } of c.job('job_1').events()) {
      expect(seq).toBe(1);
      break;
    }
    await expect.poll(() => service?.subscriptions[0]?.ended).toBe(true);
  });

  test('the signal ends a wait with its reason', async () => {
    const stop = new AbortController();
    const c = await connect({ onSubscribe: () => stop.abort(new Error('enough')) });
    await expect(seqsOf(c.job('job_1').events({ signal: stop.signal }))).rejects.toThrow('enough');
    await expect(seqsOf(c.job('job_1').events({ signal: stop.signal }))).rejects.toThrow('enough');
  });

  test('a reader that is far behind is unsubscribed, and misses nothing', async () => {
    const many = 2_500;
    const c = await connect({
      onSubscribe(live) {
        for (let seq = Number(live.variables.after) + 1; seq <= many; seq++)
          live.next(event(seq, seq === many ? 'JobFailed' : undefined));
        live.complete();
      },
    });
    const seqs: number[] = [];
    for await (const { seq } of c.job('job_1').events()) {
      // The first value is held until the rest of the burst has come.
      if (seqs.push(seq) === 1) await expect.poll(() => service?.subscriptions[0]?.ended).toBe(true);
    }
    expect(seqs).toEqual(Array.from({ length: many }, (_, i) => i + 1));
    expect(service?.subscriptions[1]?.variables.after).toBe(1_001);
  });

  test('closing the client ends its streams with an error', async () => {
    const c = await connect({ onSubscribe: () => void c.close() });
    await expect(seqsOf(c.job('job_1').events())).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
    await expect(seqsOf(c.job('job_1').events())).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  });

  test('without a WebSocket, where only that will do, the error says what to do', async () => {
    service = await scriptedService({});
    const bare = createClient({ url: service.url, transport: 'ws' });
    if (typeof WebSocket !== 'undefined' && 'WebSocket' in globalThis) return;
    const error = await seqsOf(bare.job('job_1').events()).catch((e: RequestError) => e);
    expect(error).toMatchObject({ code: 'NO_WEBSOCKET' });
  });
});

describe('progress', () => {
  test('never goes back: older and equal versions are dropped, also behind a break', async () => {
    let turn = 0;
    const c = await connect({
      onSubscribe(live) {
        const versions = [[3, 2, 5], [4, 5], [9]][turn++] ?? [];
        for (const version of versions) live.next(job(version, version === 9 ? 'COMPLETED' : 'RUNNING'));
        if (turn < 3) live.cut();
        else live.complete();
      },
    });
    const versions: number[] = [];
    for await (const { version } of c.job('job_1').progress()) versions.push(version);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(new Set(versions).size).toBe(versions.length);
    expect(versions.at(-1)).toBe(9);
  });

  test('a stream cut without the terminal value is taken up again', async () => {
    let turn = 0;
    const c = await connect({
      onRequest: () => ended(9),
      onSubscribe(live) {
        live.next(turn++ === 0 ? job(3) : job(9, 'FAILED'));
        live.complete();
      },
    });
    const states: string[] = [];
    for await (const { state } of c.job('job_1').progress()) states.push(state);
    expect(states.at(-1)).toBe('FAILED');
  });

  test('the connection tells when it is lost and when it is back', async () => {
    const states: string[] = [];
    let turn = 0;
    const script: Script = {
      onSubscribe(live) {
        if (turn++ === 0) return live.cut();
        live.next(job(1, 'COMPLETED'));
        live.complete();
      },
    };
    const c = await connect(script, (state) => states.push(state));
    for await (const _ of c.job('job_1').progress());
    expect(states).toEqual(['live', 'reconnecting', 'live']);
  });
});
