import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cleanUp, type Service } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type Trial, trial } from './bench.ts';

const MB = 1_000_000;
const ZONES = { api: 'America/St_Johns', worker: 'Asia/Kolkata', database: 'Asia/Kathmandu' };

afterAll(cleanUp);

async function residentBytes(pid: number): Promise<number> {
  const [, pages = '0'] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ');
  return Number(pages) * 4_096;
}

describePostgres('data', () => {
  const ends: (() => unknown)[] = [];
  let t: Trial;
  let api: Service;
  let worker: Service;

  // Every process and the database in a zone of its own: no instant may depend on any of them.
  beforeAll(async () => {
    t = await trial({ onTestFinished: (end) => void ends.push(end as () => unknown) });
    await t.sql.unsafe(
      `alter database ${new URL(t.databaseUrl).pathname.slice(1)} set timezone to '${ZONES.database}'`,
    );
    [api, worker] = await Promise.all([t.api({ TZ: ZONES.api }), t.worker({ TZ: ZONES.worker })]);
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });

  async function post(body: string): Promise<{ status: number; text: string }> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${api.url}/graphql`, { method: 'POST', headers, body });
    return { status: response.status, text: await response.text() };
  }
  const submit = (input: string) =>
    post(
      `{"query":"mutation($i: JSON) { submitJob(input: { task: \\"echo\\", input: $i }) {
      __typename ... on SubmitJobPayload { job { id } } ... on UserError { message code } } }","variables":{"i":${input}}}`.replaceAll(
        '\n',
        ' ',
      ),
    );

  test.concurrent('comes back as it was sent, and is of its own type in the store (B60)', async () => {
    const values = [
      { a: { b: [1, { c: null }] } },
      [1, 2, [3]],
      '{"a":1}',
      'null',
      '',
      0,
      -0.5,
      1e308,
      true,
      null,
      { '': 1 },
    ];
    const check = async (value: unknown): Promise<void> => {
      const job = await t.client.submit('echo', value);
      expect(await job.result()).toEqual(value);
      const types = await t.sql<{ kind: string; type: string }[]>`
        select kind, json_typeof(data) as type from waymark.payloads where job_id = ${t.uuid(job.id)} order by kind`;
      const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
      expect(types).toEqual([
        { kind: 'input', type },
        { kind: 'result', type },
      ]);
    };
    await Promise.all(values.map(check));
  });

  test.concurrent('that JSON cannot carry exactly is refused at the door with its path, and nothing is made', async () => {
    const [before] =
      await t.sql`select count(*)::int as n from waymark.jobs where queue = 'default' and task = 'echo' and created_at > now()`;
    for (const [text, path] of [
      ['{"a":[1,9007199254740993]}', 'a[1]'],
      ['12345678901234567890', 'i: '],
      ['{"deep":{"n":-9007199254740995}}', 'deep.n'],
    ]) {
      const { text: answer } = await submit(text as string);
      expect(answer).toContain('beyond 2^53');
      expect(answer).toContain(path);
    }
    const [after] =
      await t.sql`select count(*)::int as n from waymark.jobs where queue = 'default' and task = 'echo' and created_at > now()`;
    expect(after).toEqual(before);
    expect((await submit('9007199254740991')).text).toContain('job_');
  });

  describe('of an odd kind', () => {
    const results: [string, string, unknown][] = [
      ['circular', 'FAILED', 'RESULT_NOT_JSON'],
      ['bigint', 'FAILED', 'RESULT_NOT_JSON'],
      ['function', 'FAILED', 'RESULT_NOT_JSON'],
      ['symbol', 'FAILED', 'RESULT_NOT_JSON'],
      ['map', 'FAILED', 'RESULT_NOT_JSON'],
      ['getter', 'FAILED', 'RESULT_NOT_JSON'],
      ['undefined', 'COMPLETED', null],
      ['date', 'COMPLETED', '1970-01-01T00:00:00.000Z'],
      ['throws a string', 'FAILED', 'Error'],
      ['throws undefined', 'FAILED', 'Error'],
      ['throws null', 'FAILED', 'Error'],
      ['throws a circle', 'FAILED', 'Error'],
      ['throws many', 'FAILED', 'AggregateError'],
      ['throws 5 MB', 'FAILED', 'Error'],
      ['throws NUL', 'FAILED', 'Error'],
      ['rejects later', 'COMPLETED', 'returned'],
    ];
    test('ends its own job with a clear code, soon, and no process (B63)', async () => {
      const check = async ([way, state, what]: (typeof results)[number]): Promise<void> => {
        const { id } = await t.client.submit('odd', { way });
        expect([way, await t.ends(id)]).toEqual([way, state]);
        const [attempt] = await t.attempts(id);
        if (state === 'FAILED') expect([way, attempt?.code]).toEqual([way, what]);
        else expect([way, await t.client.job(id).result()]).toEqual([way, what]);
        expect((await t.attempts(id)).length).toBe(1);
      };
      await Promise.all(results.map(check));
      expect(await t.client.submit('echo', 'next').then((job) => job.result())).toBe('next');
      process.kill(worker.pid, 0);
    });
  });

  test('larger than its limit is refused with a code, is not tried again, and leaves no memory behind (B64)', async () => {
    await t.client.submit('big', { result: MB / 2 }).then((job) => job.result());
    const [apiBefore, workerBefore] = await Promise.all([residentBytes(api.pid), residentBytes(worker.pid)]);
    for (const size of [1.2 * MB, 16 * MB, 64 * MB]) {
      for (const [input, code] of [
        [{ result: size }, 'RESULT_TOO_LARGE'],
        [{ checkpoint: size }, 'CHECKPOINT_TOO_LARGE'],
      ] as const) {
        const { id } = await t.client.submit('big', input);
        expect(await t.ends(id)).toBe('FAILED');
        expect(await t.attempts(id)).toMatchObject([{ outcome: 'FAILED', code }]);
      }
      const { status, text } = await submit(`"${'x'.repeat(size)}"`);
      expect([413, 200]).toContain(status);
      expect(text).toMatch(/PAYLOAD_TOO_LARGE|too large/i);
    }
    const many = await t.client.submit('big', { checkpoints: 1_000 });
    expect(await many.result()).toBe('small');
    await eventually(
      async () => {
        expect((await residentBytes(api.pid)) - apiBefore).toBeLessThan(200 * MB);
        expect((await residentBytes(worker.pid)) - workerBefore).toBeLessThan(400 * MB);
      },
      { timeoutMs: 20_000, intervalMs: 200 },
    );
  }, 90_000);

  test.concurrent('that is a time is one instant for everybody, whatever the zones (B51, B65)', async () => {
    const soon = new Date(Date.now() + 1_500);
    // The same instant as somebody in Kathmandu writes it.
    const local = new Date(soon.getTime() + (5 * 60 + 45) * 60_000).toISOString().replace('Z', '+05:45');
    const from = Date.now();
    const job = await t.clientOf(api).submit('echo', 1, { runAt: local });
    const to = Date.now();
    await t.ends(job.id);
    const FIELDS = 'query ($id: ID!) { job(id: $id) { createdAt runAt startedAt finishedAt events { nodes { at } } } }';
    const seen = (await (async () => {
      const { text } = await post(JSON.stringify({ query: FIELDS, variables: { id: job.id } }));
      const { data, errors } = JSON.parse(text);
      expect(errors).toBeUndefined();
      return data.job;
    })()) as Record<'createdAt' | 'runAt' | 'startedAt' | 'finishedAt', string> & {
      events: { nodes: { at: string }[] };
    };
    const byOther = await t.query<{ job: unknown }>(FIELDS, { id: job.id });
    expect(byOther.job).toEqual(seen);
    for (const time of [seen.createdAt, seen.runAt, seen.startedAt, seen.finishedAt]) expect(time).toMatch(/Z$/);
    expect(Date.parse(seen.runAt)).toBe(soon.getTime());
    expect(Date.parse(seen.createdAt)).toBeGreaterThanOrEqual(from - 1);
    expect(Date.parse(seen.createdAt)).toBeLessThanOrEqual(to + 1);
    expect(Date.parse(seen.startedAt)).toBeGreaterThanOrEqual(soon.getTime());
    const times = seen.events.nodes.map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(Date.parse(seen.startedAt)).toBeLessThanOrEqual(Date.parse(seen.finishedAt));
  });
});
