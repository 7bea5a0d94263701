import { beforeAll, describe, expect, test } from 'vitest';
import { cascadeOf, withdrawApprovals } from '../../src/db/follow-ups/children.ts';
import { passKeysOn } from '../../src/db/follow-ups/concurrency.ts';
import { downstreamOf, endDeferred, satisfyEdges } from '../../src/db/follow-ups/dependants.ts';
import { reviveJobs } from '../../src/db/follow-ups/revive.ts';
import { concernedJobs } from '../../src/db/follow-ups/take.ts';
import { cancel } from '../../src/db/transitions/cancel.ts';
import { claim } from '../../src/db/transitions/claim.ts';
import { retry } from '../../src/db/transitions/retry.ts';
import { settle, unsettled } from '../../src/db/transitions/settle.ts';
import { stage } from '../../src/db/transitions/stage.ts';
import type { Executor, SqlParam } from '../../src/db/types.ts';
import { flushProgress, saveCheckpoints } from '../../src/db/writes/checkpoints.ts';
import { waitersAmong } from '../../src/db/writes/children.ts';
import { pruneBare, pruneFinished, pruneKeys } from '../../src/db/writes/prune.ts';
import { pruneFamilies } from '../../src/db/writes/prune-families.ts';
import { databases, type TestDatabase } from '../support/database.ts';

const DAY_MS = 86_400_000;
const ID = '00000000-0000-0000-0000-000000000001';

/** Passes that come round every few seconds, and the index condition by which they see only what is due. */
const PASSES: readonly { pass: string; run: (db: Executor) => Promise<unknown>; bound: RegExp }[] = [
  { pass: 'staging', run: (db) => stage(db, { priorityStepMs: 1, limit: 500 }), bound: /run_at <= / },
  {
    pass: 'pruning of finished jobs',
    run: (db) => pruneFinished(db, 'COMPLETED', 7 * DAY_MS, 500),
    bound: /state = 'COMPLETED'::text\) AND \(finished_at < /,
  },
  { pass: 'pruning of keys', run: (db) => pruneKeys(db, 500), bound: /expires_at <= / },
  { pass: 'pruning of bare rows', run: (db) => pruneBare(db, 30 * DAY_MS, 500), bound: /pruned_at < / },
];

describe.each(databases())('what a maintenance pass looks at on $name', ({ open }) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await open();
    // Thousands of each kind, nothing of which is due.
    await database.maintenance.query(FILL, ['default', 6_000]);
    await database.maintenance.query('analyze');
  });

  test.each(PASSES)('$pass reads its index as far as the present moment and no further', async ({ run, bound }) => {
    const plan = await planOf(database, run);
    expect(plan.split('\n').filter((line) => line.includes('Index Cond:') && bound.test(line))).toHaveLength(1);
  });
});

const CHECKPOINT = {
  ...{ jobId: ID, attempt: 1, key: 'k', kind: 'STEP', data: 'null' },
  ...{ processed: null, succeeded: null, failed: null, errorSamples: null, progress: null },
};
const END = {
  ...{
    jobId: ID,
    attempt: 1,
    outcome: 'SUCCEEDED' as const,
    digest: '-',
    result: null,
    resultDigest: null,
    error: null,
  },
  ...{ fullError: null, retryable: false, delayMs: null, reason: null, forced: false, progress: null },
};
const by = { tenant: 't', actor: 'u', expectedRun: null, fromCheckpoint: null, reason: '', priorityStepMs: 1 };

/** What looks for jobs by a list of ids, and removes, among others. */
const BY_IDS: readonly { pass: string; run: (db: Executor) => Promise<unknown> }[] = [
  ...PASSES.slice(1),
  { pass: 'the fate of ends that changed nothing', run: (db) => unsettled(db, [{ jobId: ID, attempt: 1 }]) },
  { pass: 'a claim', run: (db) => claim(db, ID, { queues: null, tasks: ['a'], limit: 1 }) },
  { pass: 'staging', run: (db) => stage(db, { priorityStepMs: 1, limit: 500 }) },
  { pass: 'a settle', run: (db) => settle(db, [END], false) },
  { pass: 'a checkpoint', run: (db) => saveCheckpoints(db, [CHECKPOINT], 'refuse') },
  { pass: 'progress', run: (db) => flushProgress(db, [{ jobId: ID, attempt: 1, progress: '{}' }]) },
  { pass: 'a retry', run: (db) => retry(db, [ID], [ID], { ...by, fromStart: false }) },
  { pass: 'a retry from the start', run: (db) => retry(db, [ID], null, { ...by, fromStart: true }) },
  { pass: 'what a follow-up concerns', run: (db) => concernedJobs(db, [ID], [ID]) },
  { pass: 'edges behind ended jobs', run: (db) => satisfyEdges(db, [ID], [ID]) },
  { pass: 'dependants that end', run: (db) => downstreamOf(db, [ID], [ID]) },
  {
    pass: 'dependants that are ended',
    run: (db) => endDeferred(db, [{ id: ID, by: ID, state: 'FAILED', reason: '' }]),
  },
  { pass: 'dependants that are revived', run: (db) => reviveJobs(db, [ID], [ID]) },
  { pass: 'keys that are passed on', run: (db) => passKeysOn(db, [ID], new Set()) },
  {
    pass: 'a cancel',
    run: (db) => cancel(db, [ID], { tenant: 't', actor: 'u', reason: null, expectedRun: null, cascade: true }),
  },
  { pass: 'children and siblings to be canceled', run: (db) => cascadeOf(db, [ID], [ID]) },
  { pass: 'approvals of ended jobs', run: (db) => withdrawApprovals(db, [ID]) },
  { pass: 'who waits for a job', run: (db) => waitersAmong(db, ID, { ids: [ID], keys: [] }) },
  {
    pass: 'pruning of families',
    run: (db: Executor) =>
      pruneFamilies(db, [{ root: ID, kind: 'job', id: ID }], { completed: 1, failed: 1, canceled: 1 }),
  },
];
/** The tables that grow with the number of jobs. */
const LARGE =
  /on (payloads|ended_attempts|checkpoints|events|job_logs|artifacts|idempotency_keys|jobs|job_states|approvals|approval_decisions|job_dependencies|graphs|graph_nodes|concurrency_keys|followups) /;

/** By an id, a place in the table, a queue, or as far as the present moment. */
const BOUND =
  /Cond: .*(\bid|(?<!worker)_id|ctid|queue|concurrency_key|\bkey) = |Cond: .*(expires_at|finished_at|pruned_at|run_at) </;

describe.each(
  // The moments that mislead a planner most.
  databases().flatMap(({ name, open }) => [0, 60].map((jobs) => ({ name, open, jobs }))),
)(
  'jobs that are looked for by a list or an index, by a plan made when there were $jobs jobs, on $name',
  ({ open, jobs }) => {
    let database: TestDatabase;

    beforeAll(async () => {
      database = await open();
      await database.maintenance.query(FILL, ['default', jobs]);
      await database.maintenance.query('analyze');
    });

    test.each(BY_IDS)('$pass finds them by an index', async ({ run }) => {
      const lines = (await planOf(database, run)).split('\n');
      const scans = lines.flatMap((line, i) => (/ Scan /.test(line) && LARGE.test(line) ? [[line, lines[i + 1]]] : []));
      expect(scans.length).toBeGreaterThan(0);
      expect(scans.filter(([, next]) => !BOUND.test(next ?? ''))).toEqual([]);
    });
  },
);

describe.each(databases())('where something was left by what came before on $name', ({ open }) => {
  test.each([
    {
      what: 'a claim',
      run: (db: Executor) => claim(db, ID, { queues: null, tasks: ['a'], limit: 1, from: 1 }),
      bound: /Index Cond: .*task = .* \(rank >= /,
    },
    {
      what: 'a removal',
      run: (db: Executor) => pruneFinished(db, 'COMPLETED', DAY_MS, 500, '2026-01-01T00:00:00Z'),
      bound: /Index Cond: .*\(finished_at >= /,
    },
  ])('$what enters the index behind it', async ({ run, bound }) => {
    expect(await planOf(await open(), run)).toMatch(bound);
  });
});

/** The plans of the statements that `run` makes: those that are kept whatever their parameters are. */
async function planOf(database: TestDatabase, run: (db: Executor) => Promise<unknown>): Promise<string> {
  const plans: string[] = [];
  const explaining = {
    async query(text: string, params: readonly SqlParam[] = []) {
      const rows = await database.maintenance.transaction(async (tx) => {
        await tx.query('set local plan_cache_mode = force_generic_plan');
        await tx.query('set local enable_seqscan = off');
        await tx.query(`prepare explained as ${text}`);
        const plan = await tx.query<Record<string, string>>(
          `explain execute explained(${params.map(literal).join(', ')})`,
        );
        await tx.query('deallocate explained');
        return plan;
      });
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return [];
    },
  };
  await run(explaining as unknown as Executor);
  expect(plans.length).toBeGreaterThan(0);
  return plans.join('\n');
}

const literal = (value: SqlParam) => (value === null ? 'null' : `'${String(value).replaceAll("'", "''")}'`);

const FILL = `
with j as (
  insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
  select gen_random_uuid(), 't', 'a', $1, 0, '{}', '-', 'u', '{}', now() from generate_series(1, $2::int)
  returning id
),
n as (select id, row_number() over () % 3 as kind from j),
s as (
  insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, changed_at, finished_at,
                                  pruned_at)
  select id, 't', 'a', $1, case kind when 0 then 'SCHEDULED' else 'COMPLETED' end, 1, now(),
         now() + interval '1 day', now(), case when kind > 0 then now() - interval '1 day' end,
         case when kind = 2 then now() end
  from n
)
insert into waymark.idempotency_keys (tenant, kind, name, key, job_id, digest, created_at, expires_at)
select 't', 'task', 'a', id::text, id, '-', now(), now() + interval '1 day' from n where kind > 0`;
