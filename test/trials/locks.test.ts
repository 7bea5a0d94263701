import postgres, { type Sql } from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import type { AnyTask } from '../../src/core/task.ts';
import { openDatabase } from '../../src/db/open.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createWaymark } from '../../src/waymark.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { createPostgresDatabase, describePostgres } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { engineOptions, insertWorker, me } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { inconsistencies } from './storm/consistency.ts';
import type { StormProcess } from './storm/sky.ts';
import { ACTIONS, MOVES, storm } from './storm/storm.ts';
import { LEASE_MS, WORK } from './storm/work.ts';

const FOR_MS = Number(process.env.WAYMARK_TRIAL_LOCKS_MS ?? 12_000);
const PROCESSES = 4;
/** So short that jobs and keys go while others still reach for them. */
const RETAIN_MS = 300;
const RETAIN_KEYS_MS = 1_000;

const definition = (defineTask({ name: 'storm', run: () => 1 }) as AnyTask).definition;

describePostgres('the lock order', () => {
  test(`lets everything be done at once to the same jobs and keys for ${FOR_MS} ms without a deadlock`, {
    timeout: 3 * FOR_MS + 60_000,
  }, async () => {
    const bench = await processesOnOneDatabase();
    const { url, sql, processes } = bench;
    await sql`create table public.storm (what text)`;
    const waymark = await createWaymark({ databaseUrl: url, redisUrl: null, retainKeys: `${RETAIN_KEYS_MS}ms` });
    onTestFinished(() => waymark.close());
    const task = defineTask({ name: 'storm', run: () => 1 }) as AnyTask;
    for (const p of processes) await WORK.die(p);

    const report = await storm(processes, { random: seededRandom(), sql, waymark, task, recent: [] }, FOR_MS);

    const broken = { ...report.broken, ...(await inconsistencies(sql)) };
    await waymark.close();
    const deadlocks = await deadlocksIn(bench);
    console.info({ ...report, deadlocks });
    expect(report.faults).toEqual({});
    expect(broken).toEqual({});
    expect(deadlocks).toBe(0);
    expect(Object.keys(report.done).sort()).toEqual(Object.keys(ACTIONS).sort());
    for (const what of MOVES) expect(report.moved[what], what).toBeGreaterThan(0);
  });

  test('gives a key that is unique while unfinished one job, whoever wins it and as often as it gets free', async () => {
    const { sql, processes } = await processesOnOneDatabase();
    const worker = await insertWorker({ query: (text, params = []) => sql.unsafe(text, [...params]) as never });
    const request = { task: 'storm', idempotencyKey: 'exclusive', keyScope: 'UNTIL_FINISHED' } as const;
    for (let round = 0; round < 30; round++) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => processOf(processes, i).engine.jobs.submit(me, request, { definition })),
      );
      expect(new Set(answers.map((a) => a.jobId)).size).toBe(1);
      expect(answers.filter((a) => !a.deduplicated)).toHaveLength(1);
      const { execution } = processOf(processes, round).engine;
      const [job] = await execution.claim(worker, { queues: null, tasks: ['storm'], limit: 5 });
      await execution.settle({ jobId: job?.id ?? '', attempt: 1, outcome: 'SUCCEEDED', result: null });
    }
  });

  test('lets a pruner pass by keys that a caller has won and not yet committed, so that neither waits', async () => {
    const bench = await processesOnOneDatabase();
    const { sql, processes } = bench;
    const [first, second] = [processOf(processes, 0), processOf(processes, 1)];
    const request = (key: string) =>
      ({ task: 'storm', idempotencyKey: `exclusive ${key}`, keyScope: 'UNTIL_FINISHED' }) as const;
    // The pruner comes upon them in the order of their ends, which is not the order of their keys.
    for (const key of ['b', 'a']) {
      const { jobId } = await first.engine.jobs.submit(me, request(key), { definition });
      await first.engine.jobs.cancel(me, jobId);
    }
    await eventually(async () => {
      const [row] = await sql`select from waymark.job_states where finished_at > now() - interval '400 ms'`;
      expect(row).toBeUndefined();
    });
    await sql.begin(async (tx) => {
      const submit = (key: string) => second.engine.jobs.submit(me, request(key), { definition, tx: second.adopt(tx) });
      await submit('a');
      await within(5_000, first.engine.maintenance.prune(), 'the pass of the pruner');
      await submit('b');
    });
    await first.engine.maintenance.prune();
    expect(await inconsistencies(sql)).toEqual({});
    expect(await sql`select from waymark.job_states`).toHaveLength(2);
    expect(await deadlocksIn(bench)).toBe(0);
  });

  test('lets nobody wait for a back end that has submitted a known task and not yet committed', async () => {
    const { url, sql } = await processesOnOneDatabase();
    const [slow, quick] = await Promise.all(
      [0, 1].map(() => createWaymark({ databaseUrl: url, redisUrl: null, retainKeys: '1d' })),
    );
    onTestFinished(async () => void (await Promise.all([slow?.close(), quick?.close()])));
    const task = defineTask({ name: 'storm', run: () => 1 });
    // Only ever in transactions, of which a back end does not remember what it has made known.
    await sql.begin((tx) => slow?.submitMany([{ task }], { tx }));
    await sql.begin(async (tx) => {
      await slow?.submitMany([{ task }], { tx });
      await within(
        5_000,
        sql.begin((other) => quick?.submitMany([{ task }], { tx: other })),
        'another submit',
      );
    });
  });
});

const processOf = (processes: StormProcess[], i: number) => processes[i % PROCESSES] as StormProcess;

interface Bench {
  url: string;
  /** A caller's own connections. */
  sql: Sql;
  processes: StormProcess[];
  close(): Promise<unknown>;
}

/** Engines that share nothing but a database, on which a deadlock shows itself soon. */
async function processesOnOneDatabase(): Promise<Bench> {
  const url = await createPostgresDatabase();
  const sql = postgres(url, { max: 6, onnotice: () => {} });
  onTestFinished(() => sql.end());
  await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '200ms'`);
  const ends: (() => Promise<void>)[] = [];
  const close = () => Promise.all(ends.map((end) => end()));
  onTestFinished(close as () => Promise<never>);
  const processes = await Promise.all(
    Array.from({ length: PROCESSES }, async (): Promise<StormProcess> => {
      // The server of a small machine has a hundred connections for everybody.
      const poolSizes = { submit: 4, work: 4, beat: 1, read: 1, maintenance: 2, user: 1 };
      const database = await openDatabase({ url, poolSizes });
      ends.push(() => database.close());
      const retainMs = { completed: RETAIN_MS, failed: RETAIN_MS, canceled: RETAIN_MS, keys: RETAIN_KEYS_MS };
      const options = engineOptions({ leaseMs: LEASE_MS, sweepMs: 500, retainMs });
      const engine = createEngine({ database, channel: createMemoryChannel(), options });
      return { engine, adopt: database.adopt, worker: '', held: [] };
    }),
  );
  return { url, sql, processes, close };
}

/** What Postgres has counted, also of those that were repeated. Ends the connections: with that they say what they met. */
async function deadlocksIn({ url, sql, close }: Bench): Promise<number> {
  await Promise.all([sql.end(), close()]);
  const look = postgres(url, { max: 1 });
  try {
    const [row] = await eventually(async () => {
      const others = await look`
        select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
      expect(others).toHaveLength(0);
      return look<{ n: number }[]>`
        select deadlocks::int as n from pg_stat_database where datname = current_database()`;
    });
    return row?.n ?? 0;
  } finally {
    await look.end();
  }
}
