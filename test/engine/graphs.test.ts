import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findCycle } from '../../src/core/dependency.ts';
import { GraphIdempotencyConflict, IdempotencyConflict, InvalidInput, UnknownTask } from '../../src/core/errors.ts';
import { rollUp } from '../../src/core/graph.ts';
import { JOB_STATES, type JobState } from '../../src/core/state.ts';
import type { GraphNodeRequest } from '../../src/engine/graph-types.ts';
import { databases } from '../support/database.ts';
import { me } from '../support/factory.ts';
import { type DependencyBench, dependencyBench } from './dependency-bench.ts';

const node = (name: string, ...dependsOn: string[]): GraphNodeRequest => ({
  name,
  job: { task: 'echo' },
  dependsOn: dependsOn.map((n) => ({ node: n })),
});

async function countRows(b: DependencyBench): Promise<Record<string, number>> {
  const [row] = await b.database.submit.query<Record<string, number>>(
    `select (select count(*) from waymark.jobs)::int as jobs, (select count(*) from waymark.graphs)::int as graphs,
            (select count(*) from waymark.graph_nodes)::int as nodes, (select count(*) from waymark.idempotency_keys)::int as keys,
            (select count(*) from waymark.job_dependencies)::int as edges`,
  );
  return row ?? {};
}

describe.each(databases())('graphs on $name', ({ open }) => {
  const setUp = async () => dependencyBench(await open());

  test('a diamond is written whole and runs in the order of its edges', async () => {
    const b = await setUp();
    const { jobs, graphId, deduplicated } = await b.engine.graphs.submitGraph(me, {
      title: 'diamond',
      nodes: [node('a'), node('b', 'a'), node('c', 'a'), node('d', 'b', 'c')],
    });
    expect(deduplicated).toBe(false);
    const [x, y, z, end] = ['a', 'b', 'c', 'd'].map((n) => jobs.get(n) as string) as [string, string, string, string];
    expect((await b.claim()).map((j) => j.id)).toEqual([x]);
    await b.finish(x);
    await b.finish(y);
    expect(await b.state(end)).toBe('DEFERRED');
    await b.finish(z);
    await b.finish(end);
    const states = await b.database.submit.query<{ state: string }>(
      'select s.state from waymark.jobs j join waymark.job_states s on s.id = j.id where j.graph_id = $1::uuid',
      [graphId],
    );
    expect(states.map((s) => s.state)).toEqual(Array(4).fill('COMPLETED'));
  });

  test.each([
    ['a cycle', [node('a', 'c'), node('b', 'a'), node('c', 'b')], 'nodes.a.dependsOn', 'a → c → b → a'],
    ['a node that depends on itself', [node('a', 'a')], 'nodes.a.dependsOn', 'the node itself'],
    ['an unknown node', [node('a'), node('b', 'x')], 'nodes.b.dependsOn', '"x"'],
    ['a name twice', [node('a'), node('a')], 'nodes.a', 'two nodes'],
    ['a dependency twice', [node('a'), node('b', 'a', 'a')], 'nodes.b.dependsOn', 'twice'],
    ['an empty name', [node('')], 'nodes[0].name', 'must be letters'],
    ['no node', [], 'nodes', 'must not be empty'],
    ['too many nodes', Array.from({ length: 1_001 }, (_, i) => node(`n${i}`)), 'nodes', 'more than 1000'],
    ['a bad job', [node('a'), { ...node('b'), job: { task: 'echo', priority: 1_000 } }], 'nodes.b.priority', 'integer'],
  ])('%s is refused with the node and the rule, and nothing is written', async (_, nodes, path, rule) => {
    const b = await setUp();
    const refused = await b.engine.graphs.submitGraph(me, { nodes, idempotencyKey: 'k' }).catch((e) => e);
    expect(refused).toBeInstanceOf(InvalidInput);
    expect(refused.issues[0].path).toBe(path);
    expect(refused.issues[0].message).toContain(rule);
    expect(await countRows(b)).toEqual({ jobs: 0, graphs: 0, nodes: 0, keys: 0, edges: 0 });
  });

  test('an unknown task, a job outside that is not there and a key of another input name the node', async () => {
    const b = await setUp();
    const first = await b.submit({ idempotencyKey: 'k', input: 1 });
    const before = await countRows(b);
    const refused = async (job: GraphNodeRequest['job']) =>
      b.engine.graphs.submitGraph(me, { nodes: [node('a'), { name: 'b', job }] }).catch((e) => e);
    expect(await refused({ task: 'nope' })).toMatchObject({ path: 'nodes.b', code: 'UNKNOWN_TASK' });
    expect(await refused({ task: 'nope' })).toBeInstanceOf(UnknownTask);
    const missing = '0199aaaa-0000-7000-8000-000000000000';
    expect(await refused({ task: 'echo', dependsOn: [{ jobId: missing }] })).toMatchObject({
      path: 'nodes.b',
      code: 'NOT_FOUND',
    });
    const conflict = await refused({ task: 'echo', idempotencyKey: 'k', input: 2 });
    expect(conflict).toBeInstanceOf(IdempotencyConflict);
    expect(conflict).toMatchObject({ path: 'nodes.b', jobId: first });
    expect(await countRows(b)).toEqual(before);
  });

  test('a node whose key exists is that job: it is waited for, and keeps its own place', async () => {
    const b = await setUp();
    const own = await b.submit({ idempotencyKey: 'k' });
    const { jobs, graphId } = await b.engine.graphs.submitGraph(me, {
      nodes: [node('a'), { ...node('b', 'a'), job: { task: 'echo', idempotencyKey: 'k' } }, node('c', 'b')],
    });
    expect(jobs.get('b')).toBe(own);
    const nodes = await b.database.submit.query<{ name: string; deduplicated: boolean }>(
      'select name, deduplicated from waymark.graph_nodes where graph_id = $1::uuid order by position',
      [graphId],
    );
    expect(nodes.map((n) => n.deduplicated)).toEqual([false, true, false]);
    await b.finish(own);
    await b.becomes(jobs.get('c') as string, 'QUEUED');
    expect(await b.state(jobs.get('a') as string)).toMatch(/QUEUED|RUNNING/);
  });

  test('a graph key gives the same graph again, whoever asks at once, and another graph is a conflict', async () => {
    const b = await setUp();
    const request = { idempotencyKey: 'nightly', nodes: [node('a'), node('b', 'a')] };
    const all = await Promise.all(Array.from({ length: 20 }, () => b.engine.graphs.submitGraph(me, request)));
    expect(new Set(all.map((g) => g.graphId)).size).toBe(1);
    expect(all.filter((g) => !g.deduplicated)).toHaveLength(1);
    expect(new Set(all.map((g) => g.jobs.get('b'))).size).toBe(1);
    expect(await countRows(b)).toEqual({ jobs: 2, graphs: 1, nodes: 2, keys: 1, edges: 1 });
    const other = await b.engine.graphs.submitGraph(me, { ...request, nodes: [node('a')] }).catch((e) => e);
    expect(other).toBeInstanceOf(GraphIdempotencyConflict);
    expect(other.graphId).toBe(all[0]?.graphId);
  });

  test('a chain of 1,000 nodes is written in one call, and canceled whole by its first', async () => {
    const b = await setUp();
    const nodes = Array.from({ length: 1_000 }, (_, i) => (i === 0 ? node('n0') : node(`n${i}`, `n${i - 1}`)));
    const { jobs } = await b.engine.graphs.submitGraph(me, { nodes });
    expect(await countRows(b)).toMatchObject({ jobs: 1_000, edges: 999 });
    await b.engine.jobs.cancel(me, jobs.get('n0') as string);
    await b.becomes(jobs.get('n999') as string, 'CANCELED');
  });
});

test('findCycle finds a cycle exactly when there is one', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 30 }),
      (n, pairs) => {
        const graph = new Map(Array.from({ length: n }, (_, i) => [`${i}`, [] as string[]]));
        for (const [from, to] of pairs) if (from < n && to < n) graph.get(`${to}`)?.push(`${from}`);
        const cycle = findCycle(graph);
        // A graph has no cycle exactly when its nodes can be taken away one after the other, those without upstreams first.
        const left = new Map([...graph].map(([k, v]) => [k, new Set(v)]));
        for (let moved = true; moved; ) {
          moved = false;
          for (const [name, upstreams] of left) {
            if ([...upstreams].some((u) => left.has(u))) continue;
            left.delete(name);
            moved = true;
          }
        }
        expect(cycle !== null).toBe(left.size > 0);
        if (cycle === null) return;
        expect(cycle.at(0)).toBe(cycle.at(-1));
        cycle.slice(1).forEach((name, i) => {
          expect(graph.get(cycle[i] as string)).toContain(name);
        });
      },
    ),
  );
});

test('a graph is terminal exactly when all its nodes are', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...JOB_STATES), { minLength: 1 }), (states) => {
      const terminal = (s: JobState) => ['COMPLETED', 'FAILED', 'CANCELED'].includes(s);
      expect(terminal(rollUp(states))).toBe(states.every(terminal));
      expect(states).toContain(rollUp(states));
    }),
  );
});
