import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  createClient,
  JobCanceledError,
  JobFailedError,
  RequestError,
  WaitTimeoutError,
} from '../../src/client/index.ts';
import { job, type Script, type ScriptedService, scriptedService, type Vars } from './scripted-service.ts';

let service: ScriptedService | undefined;
let close = async () => {};

async function connect(script: Script, options: object = {}) {
  service = await scriptedService(script);
  const client = createClient({ url: service.url, webSocket: WebSocket, ...options });
  close = () => client.close();
  return client;
}

afterEach(async () => {
  await close();
  await service?.close();
  service = undefined;
});

const payload = (more: object = {}) => ({
  data: { submitJob: { __typename: 'SubmitJobPayload', deduplicated: false, job: job(1), ...more } },
});

describe('submit', () => {
  test('carries a random key of its own, and repeats with the same one when the service is away', async () => {
    const inputs: Vars[] = [];
    const c = await connect({
      onRequest(_query, { input }) {
        inputs.push(input as Vars);
        return inputs.length < 3 ? 503 : payload({ deduplicated: true });
      },
    });
    const handle = await c.submit('hello', { name: 'Ada' }, { runAt: new Date(0), tags: ['a'] });
    expect(handle).toMatchObject({ id: 'job_1', deduplicated: true });
    expect(inputs).toHaveLength(3);
    expect(new Set(inputs.map((i) => i.idempotencyKey)).size).toBe(1);
    expect(inputs[0]?.idempotencyKey).toMatch(/^auto-[0-9a-f]{32}$/);
    expect(inputs[0]).toMatchObject({
      task: 'hello',
      input: { name: 'Ada' },
      runAt: '1970-01-01T00:00:00.000Z',
      tags: ['a'],
    });
    await c.submit('hello');
    expect(inputs[3]?.idempotencyKey).not.toBe(inputs[0]?.idempotencyKey);
    expect(inputs[3]).not.toHaveProperty('input');
  });

  test('a refusal is an error with the code, the issues and all that was said', async () => {
    const issues = [{ path: 'input.name', message: 'is missing' }];
    const refusal = {
      __typename: 'InvalidInput',
      code: 'INVALID_INPUT',
      message: 'input.name: is missing',
      path: null,
      issues,
    };
    const c = await connect({ onRequest: () => ({ data: { submitJob: refusal } }) });
    const error = await c.submit('hello', {}).catch((e: RequestError) => e);
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ code: 'INVALID_INPUT', issues, isUnavailable: false });
  });

  test('token and actor go with every request and connection', async () => {
    const seen: unknown[] = [];
    const script: Script = {
      onRequest: (_q, _v, headers) => {
        seen.push([headers.authorization, headers['x-waymark-actor']]);
        return payload();
      },
      onInit: (init) => seen.push([init.authorization, init['x-waymark-actor']]),
      onSubscribe: (live) => {
        live.next(job(2, 'COMPLETED'));
        live.complete();
      },
    };
    let n = 0;
    const c = await connect(script, { token: async () => `t${++n}`, actor: 'user:ada' });
    const handle = await c.submit('hello');
    for await (const _ of handle.progress());
    expect(seen).toEqual([
      ['Bearer t1', 'user:ada'],
      ['Bearer t2', 'user:ada'],
    ]);
  });
});

describe('requests', () => {
  test('nobody there is UNREACHABLE; something else there is BAD_RESPONSE', async () => {
    const c = await connect({ onRequest: () => 404 });
    await expect(c.request('{ x }')).rejects.toMatchObject({ code: 'BAD_RESPONSE', isUnavailable: false });
    const url = service?.url ?? '';
    await service?.close();
    await expect(createClient({ url }).cancel('job_1')).rejects.toMatchObject({
      code: 'UNREACHABLE',
      isUnavailable: true,
    });
  });

  test('a GraphQL error keeps its code', async () => {
    const fault = { message: 'slow down', extensions: { code: 'LIMIT_EXCEEDED', retryAfterMs: 5 } };
    const c = await connect({ onRequest: () => ({ errors: [fault], data: null }) });
    await expect(c.request('{ x }')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED', details: { retryAfterMs: 5 } });
  });

  test('retry is never repeated by itself: the second would be refused though the first was done', async () => {
    let calls = 0;
    const c = await connect({
      onRequest: () => {
        calls++;
        return 503;
      },
    });
    await expect(c.retry('job_1')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(calls).toBe(1);
  });
});

describe('result', () => {
  const ending = (state: string, more: object = {}): Script => ({
    onRequest: () => ({ data: { job: job(9, state, more) } }),
    onSubscribe: (live) => {
      live.next(job(9, state, more));
      live.complete();
    },
  });

  test('gives what the handler returned', async () => {
    const c = await connect(ending('COMPLETED', { result: { rows: 3 } }));
    expect(await c.job('job_1').result()).toEqual({ rows: 3 });
  });

  test('rejects with the last error of a FAILED job', async () => {
    const error = { code: 'BOOM', message: 'it broke', retryable: true, attempt: 5, at: '' };
    const c = await connect(ending('FAILED', { error }));
    const failure = await c
      .job('job_1')
      .result()
      .catch((e: JobFailedError) => e);
    expect(failure).toBeInstanceOf(JobFailedError);
    expect(failure).toMatchObject({ code: 'BOOM', error });
  });

  test('rejects with the reason of a CANCELED job', async () => {
    const c = await connect(ending('CANCELED', { cancellation: { reason: 'not needed' } }));
    const failure = await c
      .job('job_1')
      .result()
      .catch((e: JobCanceledError) => e);
    expect(failure).toBeInstanceOf(JobCanceledError);
    expect(failure).toMatchObject({ reason: 'not needed' });
  });

  test('a wait that is over says what the job is waiting for; the job goes on', async () => {
    const waitingOn = { kind: 'NO_WORKER', detail: 'no live worker runs this task', until: null };
    const c = await connect({
      onRequest: () => ({ data: { job: job(1, 'QUEUED', { waitingOn }) } }),
      onSubscribe: (live) => live.next(job(1, 'QUEUED')),
    });
    const failure = await c
      .job('job_1')
      .result({ timeout: '50ms' })
      .catch((e: WaitTimeoutError) => e);
    expect(failure).toBeInstanceOf(WaitTimeoutError);
    expect(failure).toMatchObject({ state: 'QUEUED', waitingOn });
    await expect.poll(() => service?.subscriptions[0]?.ended).toBe(true);
  });

  test('a run opened by somebody else in the last moment is waited for too', async () => {
    let asked = 0;
    const c = await connect({
      onRequest: () => ({
        data: { job: asked++ === 0 ? job(10, 'RUNNING') : job(12, 'COMPLETED', { result: 'second run' }) },
      }),
      onSubscribe: (live) => {
        live.next(asked === 0 ? job(9, 'FAILED') : job(12, 'COMPLETED'));
        live.complete();
      },
    });
    expect(await c.job('job_1').result()).toBe('second run');
  });

  test('a time limit that is none is refused', async () => {
    const c = await connect(ending('COMPLETED'));
    await expect(c.job('job_1').result({ timeout: 'soon' })).rejects.toThrow(TypeError);
  });
});
