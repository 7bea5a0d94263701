import { afterAll, beforeAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { askApi, type Trial, trial } from './bench.ts';

const CALLERS = 200;
/** Retention of jobs, then of keys: far enough apart to see what lies between. */
const RETAIN_MS = 1_000;
const RETAIN_KEYS_MS = 10_000;

interface Answer {
  __typename: string;
  deduplicated?: boolean;
  job?: { id: string; state: string; prunedAt: string | null };
  message?: string;
}

const ANSWER = `__typename
  ... on SubmitJobPayload { deduplicated job { id state prunedAt } }
  ... on UserError { message }`;
const SUBMIT = `mutation ($input: SubmitJobInput!) { submitJob(input: $input) { ${ANSWER} } }`;
const SUBMIT_MANY = `mutation ($inputs: [SubmitJobInput!]!) { submitJobs(inputs: $inputs) {
  __typename ... on SubmitJobsPayload { results { deduplicated job { id state prunedAt } } } ... on UserError { message } } }`;

afterAll(cleanUp);

describePostgres('an idempotency key', () => {
  const ends: (() => void | Promise<void>)[] = [];
  let t: Trial;
  let apis: string[];

  beforeAll(async () => {
    t = await trial(
      { onTestFinished: (end) => void ends.push(end as () => Promise<void>) },
      {
        WAYMARK_RETAIN_COMPLETED: `${RETAIN_MS}ms`,
        WAYMARK_RETAIN_FAILED: `${RETAIN_MS}ms`,
        WAYMARK_RETAIN_CANCELED: `${RETAIN_MS}ms`,
        WAYMARK_RETAIN_KEYS: `${RETAIN_KEYS_MS}ms`,
      },
    );
    const [second] = await Promise.all([t.api(), t.worker()]);
    apis = [t.first.url, second.url];
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });

  const send = <T>(url: string | undefined, query: string, variables: object) => askApi<T>(url ?? '', query, variables);
  const submit = async (input: object, api = 0): Promise<Answer> =>
    (await send<{ submitJob: Answer }>(apis[api], SUBMIT, { input })).submitJob;

  test('gives many callers at once one job, over all APIs, and none of them an error (B43)', async () => {
    const input = { task: 'echo', input: { n: 1 }, idempotencyKey: 'one of many' };
    const answers = await Promise.all(Array.from({ length: CALLERS }, (_, i) => submit(input, i % 2)));
    expect(new Set(answers.map(({ __typename }) => __typename))).toEqual(new Set(['SubmitJobPayload']));
    expect(new Set(answers.map(({ job }) => job?.id)).size).toBe(1);
    expect(answers.filter(({ deduplicated }) => deduplicated === false)).toHaveLength(1);
    const other = await submit({ ...input, input: { n: 2 } }, 1);
    expect(other.__typename).toBe('IdempotencyConflict');
    expect(other.message).not.toMatch(/unique|constraint|duplicate key/i);
  });

  const endings: [string, string, object, string][] = [
    ['completed', 'echo', {}, 'COMPLETED'],
    ['failed', 'fails', { ways: ['throw', 'throw', 'throw'] }, 'FAILED'],
    ['canceled', 'nap', { ms: 60_000 }, 'CANCELED'],
  ];
  test.concurrent.each(endings)(
    'stands for its %s job, then for its bare row, and is free when it expires (B44, B45)',
    async (name, task, payload, state) => {
      const input = { task, input: payload, idempotencyKey: `ends ${name}` };
      const { job, deduplicated } = await submit(input);
      const id = job?.id ?? '';
      expect({ id, deduplicated }).toEqual({ id: expect.stringMatching(/^job_/), deduplicated: false });
      if (state === 'CANCELED') await t.client.cancel(id);
      expect(await t.ends(id)).toBe(state);

      // At once after its end, by every way in: the same job, never nothing.
      expect(await submit(input, 1)).toMatchObject({ deduplicated: true, job: { id } });
      const { submitJobs } = await send<{ submitJobs: { results: Answer[] } }>(apis[0], SUBMIT_MANY, {
        inputs: [input, input],
      });
      expect(submitJobs.results).toMatchObject([
        { deduplicated: true, job: { id } },
        { deduplicated: true, job: { id } },
      ]);

      await eventually(async () => expect((await submit(input)).job?.prunedAt).not.toBeNull());
      expect(await submit(input)).toMatchObject({ deduplicated: true, job: { id, state } });
      await eventually(
        async () => {
          const [rows] =
            await t.sql`select count(*)::int as n from waymark.idempotency_keys where key = ${input.idempotencyKey}`;
          expect(rows?.n).toBe(0);
        },
        { timeoutMs: 3 * RETAIN_KEYS_MS },
      );
      const fresh = await submit(input);
      expect(fresh.deduplicated).toBe(false);
      expect(fresh.job?.id).not.toBe(id);
    },
    60_000,
  );

  test('of a failed job gives that job by every way in, and a retry is its next run (B46)', async () => {
    const input = { task: 'fails', input: { ways: ['throw', 'throw', 'throw', 'throw'] }, idempotencyKey: 'fails' };
    const id = (await submit(input)).job?.id ?? '';
    expect(await t.ends(id)).toBe('FAILED');
    expect(await submit(input)).toMatchObject({ deduplicated: true, job: { id, state: 'FAILED' } });
    await t.client.retry(id);
    expect(await submit(input, 1)).toMatchObject({ deduplicated: true, job: { id } });
    expect(await t.ends(id)).toBe('COMPLETED');
  });

  test('that is unique while unfinished is free in the moment its job ends, whatever the end', async () => {
    const input = { task: 'nap', input: { ms: 60_000 }, idempotencyKey: 'busy', keyScope: 'UNTIL_FINISHED' };
    const first = (await submit(input)).job?.id ?? '';
    expect(await submit({ ...input, input: { ms: 1 } }, 1)).toMatchObject({ deduplicated: true, job: { id: first } });
    await t.client.cancel(first);
    expect(await t.ends(first)).toBe('CANCELED');
    const second = await submit({ ...input, input: { ms: 1 } }, 1);
    expect(second).toMatchObject({ deduplicated: false });
    expect(second.job?.id).not.toBe(first);
  });
});
