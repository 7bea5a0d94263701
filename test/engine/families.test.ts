import { describe, expect, test } from 'vitest';
import { createEngine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';
import { engineOptions, me } from '../support/factory.ts';
import { type DependencyBench, dependencyBench } from './dependency-bench.ts';

const HOUR = 3_600_000;

/** A pruner for which everything that has finished is past its retention, but for what `over` keeps. */
function pruner(b: DependencyBench, over: Partial<Record<'completed' | 'failed' | 'canceled' | 'keys', number>> = {}) {
  const retainMs = { completed: 0, failed: 0, canceled: 0, keys: HOUR, ...over };
  const { database } = b;
  return createEngine({ database, channel: createMemoryChannel(), options: engineOptions({ retainMs }) }).maintenance;
}

/** Rows of every table that belongs to jobs. */
async function rows(b: DependencyBench): Promise<Record<string, number>> {
  const tables = [
    'jobs',
    'job_states',
    'payloads',
    'ended_attempts',
    'events',
    'checkpoints',
    'job_dependencies',
    'graphs',
    'graph_nodes',
    'approvals',
    'idempotency_keys',
    'followups',
  ];
  const [row] = await b.database.submit.query<Record<string, number>>(
    `select ${tables.map((t) => `(select count(*) from waymark.${t})::int as ${t}`).join(', ')}`,
  );
  return row ?? {};
}

const NOTHING = {
  jobs: 0,
  job_states: 0,
  payloads: 0,
  ended_attempts: 0,
  events: 0,
  checkpoints: 0,
  job_dependencies: 0,
  graphs: 0,
  graph_nodes: 0,
  approvals: 0,
  idempotency_keys: 0,
  followups: 0,
};

describe.each(databases())('retention of families on $name', ({ open, name }) => {
  const setUp = async () => dependencyBench(await open());
  const diamond = {
    nodes: [
      { name: 'a', job: { task: 'echo', input: 1 } },
      { name: 'b', job: { task: 'echo' }, dependsOn: [{ node: 'a' }] },
      { name: 'c', job: { task: 'echo' } },
    ],
  };

  test('a graph stays whole until its last node is old enough, and goes whole', async () => {
    const b = await setUp();
    const { jobs } = await b.engine.graphs.submitGraph(me, diamond);
    const id = (name: string) => jobs.get(name) as string;
    await b.finish(id('a'));
    await b.finish(id('c'));
    expect(await pruner(b).prune()).toEqual({ pruned: 0 });
    await b.finish(id('b'), 'fail');
    expect(await pruner(b, { failed: HOUR }).prune()).toEqual({ pruned: 0 });
    expect(await pruner(b).prune()).toEqual({ pruned: 3 });
    expect(await rows(b)).toEqual(NOTHING);
  });

  test('the bare rows of a graph with a key, and of its keyed node, stay until the key expires', async () => {
    const b = await setUp();
    const request = {
      idempotencyKey: 'g',
      nodes: [
        { name: 'a', job: { task: 'echo', idempotencyKey: 'k' } },
        { name: 'b', job: { task: 'echo' }, dependsOn: [{ node: 'a' }] },
      ],
    };
    const { jobs, graphId } = await b.engine.graphs.submitGraph(me, request);
    for (const id of jobs.values()) await b.finish(id);
    expect(await pruner(b).prune()).toEqual({ pruned: 2 });
    expect(await rows(b)).toEqual({
      ...NOTHING,
      jobs: 1,
      job_states: 1,
      graphs: 1,
      graph_nodes: 2,
      idempotency_keys: 2,
    });
    const again = await b.engine.graphs.submitGraph(me, request);
    expect(again).toMatchObject({ graphId, deduplicated: true });
    await b.database.submit.query(`update waymark.idempotency_keys set expires_at = now() - interval '1 second'`);
    await pruner(b).prune();
    expect(await rows(b)).toEqual(NOTHING);
  });

  test('a job that is the node of a graph by its key stays as long as the graph', async () => {
    const b = await setUp();
    const request = { task: 'echo', idempotencyKey: 'k', keyScope: 'UNTIL_FINISHED' as const };
    const shared = await b.submit(request);
    const { jobs } = await b.engine.graphs.submitGraph(me, {
      nodes: [
        { name: 'a', job: request },
        { name: 'b', job: { task: 'echo' } },
      ],
    });
    expect(jobs.get('a')).toBe(shared);
    await b.finish(shared);
    await eventually(async () => expect(await b.followUps()).toBe(0));
    expect(await pruner(b, { keys: 0 }).prune()).toEqual({ pruned: 0 });
    await b.finish(jobs.get('b') as string);
    expect(await pruner(b, { keys: 0 }).prune()).toEqual({ pruned: 2 });
    expect(await rows(b)).toEqual(NOTHING);
  });

  test('a job stays as long as one that depends on it', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit(b.after(x));
    await b.finish(x);
    expect(await pruner(b).prune()).toEqual({ pruned: 0 });
    await b.finish(d);
    expect(await pruner(b).prune()).toEqual({ pruned: 2 });
    expect(await rows(b)).toEqual(NOTHING);
  });

  // On one connection nobody can hold a row beside the pruner.
  if (name === 'Postgres')
    test('a family of which somebody holds a member stays whole, and holds up no other', async () => {
      const b = await setUp();
      const held = await b.engine.graphs.submitGraph(me, diamond);
      const other = await b.engine.graphs.submitGraph(me, diamond);
      for (const { jobs } of [held, other])
        for (const name of ['a', 'b', 'c']) await b.finish(jobs.get(name) as string);
      const [locked, release] = [deferred(), deferred()];
      const holder = b.database.submit.transaction(async (tx) => {
        await tx.query('select 1 from waymark.job_states where id = $1::uuid for update', [
          held.jobs.get('c') as string,
        ]);
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      expect(await pruner(b).prune()).toEqual({ pruned: 3 });
      expect(await rows(b)).toMatchObject({ jobs: 3, graphs: 1 });
      release.resolve();
      await holder;
      expect(await pruner(b).prune()).toEqual({ pruned: 3 });
      expect(await rows(b)).toEqual(NOTHING);
    });

  test('families that something keeps do not hold up the others, however many they are', async () => {
    const b = await setUp();
    const kept: string[] = [];
    for (let i = 0; i < 250; i++) {
      const x = await b.submit();
      kept.push(x);
    }
    const waiting: string[] = [];
    for (const x of kept) waiting.push(await b.submit(b.after([x, 'CONTINUE'])));
    for (const x of kept) await b.engine.jobs.cancel(me, x);
    // The dependants are unfinished, so their upstream jobs stay.
    const free = await b.engine.graphs.submitGraph(me, diamond);
    for (const id of free.jobs.values()) await b.engine.jobs.cancel(me, id).catch(() => {});
    const maintenance = pruner(b);
    let pruned = 0;
    for (let pass = 0; pass < 3; pass++) pruned += (await maintenance.prune()).pruned;
    expect(pruned).toBe(3);
  });
});
