import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { TERMINAL_STATES } from '../../src/core/state.ts';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { askApi, SLACK, type Trial, trial } from './bench.ts';

/** What may pass until all of a graph has ended, and until those behind a job that did not complete have. */
const GRAPH_ENDS = 5_000;
const DOWNSTREAM_ENDS = 2_000;

const SUBMIT = `mutation ($input: SubmitGraphInput!) { submitGraph(input: $input) { __typename
  ... on SubmitGraphPayload { graph { id nodes { name job { id } } } }
  ... on UserError { message code path } ... on InvalidInput { issues { path message } } } }`;
const GRAPH = `query ($id: ID!) { graph(id: $id) { state finishedAt counts { state count } nodes { name job { id state } } } }`;

interface Submitted {
  __typename: string;
  path?: string | null;
  issues?: { path: string; message: string }[];
  graph?: { id: string; nodes: { name: string; job: { id: string } }[] };
}
interface Seen {
  state: string;
  finishedAt: string | null;
  nodes: { name: string; job: { id: string; state: string } }[];
}
type Node = { name: string; job: { task: string; input?: unknown }; dependsOn?: { node: string }[] };

const node = (name: string, job: Node['job'], ...on: string[]): Node => ({
  name,
  job,
  dependsOn: on.map((from) => ({ node: from })),
});
const isTerminal = (state: string) => (TERMINAL_STATES as readonly string[]).includes(state);

const submitGraph = async (t: Trial, nodes: readonly unknown[], url = t.first.url) =>
  (await askApi<{ submitGraph: Submitted }>(url, SUBMIT, { input: { nodes } })).submitGraph;
const read = async (t: Trial, id: string) => (await t.query<{ graph: Seen }>(GRAPH, { id })).graph;

/** Does something so many times, in some lanes at once. */
async function rounds(n: number, lanes: number, round: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < n) await round(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function counted(t: Trial): Promise<Record<string, number>> {
  const [row] = await t.sql<Record<string, number>[]>`
    select (select count(*) from waymark.jobs)::int as jobs, (select count(*) from waymark.graphs)::int as graphs,
           (select count(*) from waymark.graph_nodes)::int as nodes,
           (select count(*) from waymark.job_dependencies)::int as edges,
           (select count(*) from waymark.idempotency_keys)::int as keys`;
  return { ...row };
}

/** The reason with which a job ended. */
async function reasonOf(t: Trial, id: string): Promise<string> {
  const [row] = await t.sql<{ reason: string }[]>`
    select coalesce(cancel_reason, error ->> 'message', '') as reason from waymark.job_states where id = ${t.uuid(id)}`;
  return row?.reason ?? '';
}

afterAll(cleanUp);

describePostgres('a graph', () => {
  test.concurrent('of which one is canceled at any moment ends whole, and says so (B26)', async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    await Promise.all([t.worker(), t.worker()]);
    const ends = new Map<string, number>();
    await rounds(50, 5, async (i) => {
      const nap = () => ({ task: 'nap', input: { ms: Math.round(random() * 150) } });
      const { graph } = await submitGraph(t, [
        node('root', nap()),
        node('left', nap(), 'root'),
        node('middle', nap(), 'root'),
        node('right', nap(), 'root'),
        node('end', nap(), 'left', 'middle', 'right'),
      ]);
      const id = graph?.id ?? '';
      await pause(random() * 400);
      const chosen = graph?.nodes.find((n) => n.name === (i % 2 ? 'root' : 'middle'))?.job.id ?? '';
      await t.client.cancel(chosen, { reason: `round ${i}` }).catch((error: { code?: string }) => {
        // It had ended.
        expect(error.code).toBe('INVALID_TRANSITION');
      });
      await eventually(
        async () => {
          const seen = await read(t, id);
          for (const { job } of seen.nodes) expect(isTerminal(job.state)).toBe(true);
          expect(isTerminal(seen.state)).toBe(true);
          expect(seen.finishedAt).not.toBeNull();
        },
        { timeoutMs: GRAPH_ENDS + SLACK },
      );
      const { state, nodes } = await read(t, id);
      const of = (name: string) => nodes.find((n) => n.name === name)?.job.state;
      // Whatever depends on one that was canceled did not run.
      for (const [before, behind] of [
        ['root', 'left'],
        ['root', 'middle'],
        ['root', 'right'],
        ['middle', 'end'],
      ] as const) {
        if (of(before) === 'CANCELED') expect(of(behind)).toBe('CANCELED');
      }
      expect(state).toBe(nodes.every(({ job }) => job.state === 'COMPLETED') ? 'COMPLETED' : 'CANCELED');
      const canceled = nodes.filter(({ job }) => job.state === 'CANCELED').length;
      ends.set(`${canceled} canceled`, (ends.get(`${canceled} canceled`) ?? 0) + 1);
    });
    console.log(Object.fromEntries(ends));
    expect(ends.size).toBeGreaterThan(1);
  }, 180_000);

  test.concurrent('is written whole or not at all, and what is refused is named (B41)', async (ctx) => {
    const t = await trial(ctx, { WAYMARK_MAX_INPUT: '64kB' });
    // An API knows the tasks as soon as one worker has said them.
    const teacher = await t.worker();
    teacher.kill('SIGTERM');
    await teacher.ended;
    const good = ['a', 'b', 'c', 'd', 'e'].map((name, i, all) =>
      node(name, { task: 'echo', input: i }, ...(i > 0 ? [all[i - 1] as string] : [])),
    );
    const bad: [string, unknown[], string, string | null][] = [
      [
        'a cycle',
        [...good.slice(1), node('a', { task: 'echo' }, 'f'), node('f', { task: 'echo' }, 'e')],
        'InvalidInput',
        'nodes.b',
      ],
      ['an unknown task', [...good, node('f', { task: 'nope' }, 'e')], 'UnknownTask', 'nodes.f'],
      [
        'too large an input',
        [...good, node('f', { task: 'echo', input: 'x'.repeat(70_000) })],
        'PayloadTooLarge',
        'nodes.f',
      ],
      ['a name twice', [...good, node('c', { task: 'echo' })], 'InvalidInput', 'nodes.c'],
      ['itself', [...good, node('f', { task: 'echo' }, 'f')], 'InvalidInput', 'nodes.f'],
      ['an unknown node', [...good, node('f', { task: 'echo' }, 'g')], 'InvalidInput', 'nodes.f'],
      ['a bad priority', [...good, node('f', { task: 'echo', priority: 9_999 } as never)], 'InvalidInput', 'nodes.f'],
    ];
    const before = await counted(t);
    for (const [name, nodes, type, path] of bad) {
      const keyed = nodes.map((n, i) => {
        const { job, ...rest } = n as Node;
        return { ...rest, job: { ...job, idempotencyKey: `${name} ${i}` } };
      });
      expect(await submitGraph(t, keyed), name).toMatchObject({ __typename: type, path });
    }
    expect(await counted(t)).toEqual(before);

    const chain = (n: number) =>
      Array.from({ length: n }, (_, i) => node(`n${i}`, { task: 'echo', input: i }, ...(i > 0 ? [`n${i - 1}`] : [])));
    const tooLong = await submitGraph(t, chain(1_001));
    expect(tooLong.issues?.[0]?.message).toContain('1000');
    expect(await counted(t)).toEqual(before);
    const since = performance.now();
    const { graph } = await submitGraph(t, chain(1_000));
    const tookMs = performance.now() - since;
    console.log(`a chain of 1,000 nodes was written in ${Math.round(tookMs)} ms`);
    expect(tookMs).toBeLessThan(5_000 + SLACK);
    expect(await counted(t)).toMatchObject({ jobs: 1_000, graphs: 1, nodes: 1_000, edges: 999 });
    await t.worker();
    await eventually(async () => expect((await read(t, graph?.id ?? '')).state).toBe('COMPLETED'), {
      timeoutMs: 90_000,
    });
  }, 180_000);
});

describePostgres('a job that depends on others', () => {
  test.concurrent('runs once, whenever it was submitted while they end (B37)', async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    const [second] = await Promise.all([t.api(), t.worker(), t.worker()]);
    const clients = [t.client, t.clientOf(second)] as const;
    const dependants: string[] = [];
    await rounds(500, 8, async (i) => {
      const parents = await Promise.all(
        Array.from({ length: i % 2 ? 4 : 1 }, (_, n) => clients[n % 2 ? 1 : 0].submit('echo', n)),
      );
      // At once, or about when they end.
      if (random() < 0.5) await pause(random() * 15);
      const client = clients[random() < 0.5 ? 0 : 1];
      dependants.push((await client.submit('echo', 'after', { dependsOn: parents.map((p) => p.id) })).id);
    });
    for (const id of dependants) expect(await t.ends(id)).toBe('COMPLETED');
    const uuids = dependants.map((id) => t.uuid(id));
    const [ran] = await t.sql<{ jobs: number; attempts: number; held: number }[]>`
      select count(distinct a.job_id)::int as jobs, count(*)::int as attempts,
             (select count(*)::int from waymark.events e
              where e.job_id = any(${uuids}::uuid[]) and e.type = 'JobSubmitted' and e.state = 'DEFERRED') as held
      from waymark.attempts a where a.job_id = any(${uuids}::uuid[])`;
    console.log(`${ran?.held} of 500 had to wait`);
    expect(ran).toMatchObject({ jobs: 500, attempts: 500 });
    // Both sides of the race were met.
    expect(ran?.held).toBeGreaterThan(0);
    expect(ran?.held).toBeLessThan(500);
    await eventually(async () => {
      const [left] = await t.sql<{ n: number }[]>`select count(*)::int as n from waymark.followups`;
      expect(left?.n).toBe(0);
    });
  }, 180_000);

  test.concurrent('ends with the reason when one of them does not complete, and never runs (B38)', async (ctx) => {
    const t = await trial(ctx);
    const teacher = await t.worker();
    teacher.kill('SIGTERM');
    await teacher.ended;
    /** Four jobs, each behind the one before. */
    const chainOf = async (second: 'echo' | 'fails'): Promise<[string, string, string, string]> => {
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) {
        const options = { title: `link ${i}`, ...(i > 0 ? { dependsOn: [ids[i - 1] as string] } : {}) };
        const { id } =
          i === 1 && second === 'fails'
            ? await t.client.submit('fails', { ways: ['throw', 'throw', 'throw'] }, options)
            : await t.client.submit('echo', i, options);
        ids.push(id);
      }
      return ids as [string, string, string, string];
    };
    const within = async (ids: readonly string[], state: string) => {
      for (const id of ids) expect(await t.ends(id, DOWNSTREAM_ENDS + SLACK)).toBe(state);
    };

    // Nobody works: the first one is canceled while it waits in line.
    const canceled = await chainOf('echo');
    await t.client.cancel(canceled[0], { reason: 'wrong file' });
    await within(canceled, 'CANCELED');
    expect(await reasonOf(t, canceled[1])).toBe(
      `it depends on link 0 (${canceled[0]}), which was canceled: wrong file`,
    );
    expect(await reasonOf(t, canceled[3])).toContain(`it depends on link 2 (${canceled[2]}), which was canceled`);

    await t.worker();
    const failing = await chainOf('fails');
    expect(await t.ends(failing[1])).toBe('FAILED');
    await within(failing.slice(2), 'CANCELED');
    expect(await reasonOf(t, failing[2])).toContain(`it depends on link 1 (${failing[1]}), which failed`);

    // They have ended already.
    for (const [id, policy, state] of [
      [failing[1], 'CANCEL', 'CANCELED'],
      [failing[1], 'FAIL', 'FAILED'],
      [failing[1], 'CONTINUE', 'COMPLETED'],
      [canceled[0], 'CANCEL', 'CANCELED'],
      [failing[0], 'CANCEL', 'COMPLETED'],
    ] as const) {
      const late = await t.client.submit('echo', 'late', { dependsOn: [{ jobId: id, policy }] });
      await within([late.id], state);
      if (state !== 'COMPLETED') expect(await reasonOf(t, late.id)).toContain(id);
    }
    const before = await counted(t);
    const unknown = 'job_00000000000000000000000000';
    await expect(t.client.submit('echo', 1, { dependsOn: [unknown] })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await counted(t)).toEqual(before);
    // Nothing of what was canceled or failed behind another has run.
    for (const id of [...canceled, ...failing.slice(2)]) expect(await t.attempts(id)).toEqual([]);
  }, 120_000);
});
