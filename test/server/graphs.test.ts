import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid, parseId, publicId } from '../../src/core/ids.ts';
import { counting } from '../schema/execute.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { type HandWorker, handWorker } from './hand-worker.ts';
import { type Service, startService } from './service.ts';

const SUBMIT = `mutation ($input: SubmitGraphInput!) { submitGraph(input: $input) { __typename
  ... on SubmitGraphPayload { deduplicated graph { ...All } }
  ... on UserError { message code path }
  ... on InvalidInput { issues { path message } }
  ... on GraphIdempotencyConflict { graph { id } givenDigest storedDigest }
  ... on IdempotencyConflict { job { id } }
  ... on NotFound { id } } }
  fragment All on Graph { id title state version createdAt finishedAt counts { state count capped }
    progress { current total unit fraction } edges { from to policy }
    nodes { name deduplicated job { id state graph { id } dependencies(first: 3) { policy satisfied job { id } } } } }`;
const GRAPH = `query ($id: ID!) { graph(id: $id) { id title state version finishedAt counts { state count }
  progress { current total unit fraction updatedAt } nodes { name job { id state } } } }`;

type Node = [name: string, ...dependsOn: (string | { node: string; policy: string })[]];
const nodes = (...given: Node[]) =>
  given.map(([name, ...on]) => ({
    name,
    job: { task: 'echo', input: name },
    dependsOn: on.map((o) => (typeof o === 'string' ? { node: o } : o)),
  }));
const DIAMOND = nodes(['a'], ['b', 'a'], ['c', 'a'], ['d', 'b', { node: 'c', policy: 'FAIL' }]);

describe.each(databases())('graphs by GraphQL on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;
  let reads: ReturnType<typeof counting>;

  beforeAll(async () => {
    const database = await open();
    reads = counting(database.read);
    service = await startService(open, { database, read: { query: (text, params) => reads.query(text, params) } });
    worker = await handWorker(service);
  });
  beforeEach(() => {
    reads.statements = 0;
  });

  const ask = async (document: string, variables: Record<string, unknown> = {}) => {
    const { data, errors } = await service.post(document, variables);
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  const submitGraph = async (input: Record<string, unknown>) => (await ask(SUBMIT, { input })).submitGraph;
  const graphOf = async (input: Record<string, unknown>) => {
    const { graph } = await submitGraph(input);
    const ids = Object.fromEntries(
      (graph.nodes as { name: string; job: { id: string } }[]).map((n) => [n.name, n.job.id]),
    ) as Record<string, string>;
    return { id: graph.id as string, job: (name: string) => ids[name] as string };
  };
  const read = async (id: string) => (await ask(GRAPH, { id })).graph;
  const becomes = (id: string, state: string) => eventually(async () => expect((await read(id)).state).toBe(state));

  test('a diamond is one graph, with its nodes in order and its edges by name', async () => {
    const { deduplicated, graph } = await submitGraph({ title: 'diamond', nodes: DIAMOND });
    expect(deduplicated).toBe(false);
    expect(graph).toMatchObject({ title: 'diamond', state: 'QUEUED', version: 4, finishedAt: null });
    expect(graph.id).toMatch(/^gra_/);
    expect(graph.progress).toEqual({ current: 0, total: 4, unit: 'jobs', fraction: 0 });
    expect(graph.counts).toHaveLength(9);
    expect(graph.counts).toContainEqual({ state: 'DEFERRED', count: 3, capped: false });
    expect(graph.edges).toEqual([
      { from: 'a', to: 'b', policy: 'CANCEL' },
      { from: 'a', to: 'c', policy: 'CANCEL' },
      { from: 'b', to: 'd', policy: 'CANCEL' },
      { from: 'c', to: 'd', policy: 'FAIL' },
    ]);
    const [a, b, c, d] = graph.nodes;
    expect([a, b, c, d].map((n) => [n.name, n.deduplicated, n.job.state])).toEqual([
      ['a', false, 'QUEUED'],
      ['b', false, 'DEFERRED'],
      ['c', false, 'DEFERRED'],
      ['d', false, 'DEFERRED'],
    ]);
    expect(a.job.graph.id).toBe(graph.id);
    expect(d.job.dependencies).toEqual([
      { policy: 'CANCEL', satisfied: false, job: { id: b.job.id } },
      { policy: 'FAIL', satisfied: false, job: { id: c.job.id } },
    ]);
    expect((await ask('query ($id: ID!) { node(id: $id) { id __typename } }', { id: graph.id })).node).toEqual({
      id: graph.id,
      __typename: 'Graph',
    });
  });

  test('state, counts, progress and version are rolled up, and it has an end', async () => {
    const g = await graphOf({ nodes: DIAMOND });
    await worker.complete(g.job('a'));
    await worker.start(g.job('b'));
    await worker.report(g.job('b'), 1, 4);
    const now = await read(g.id);
    expect(now).toMatchObject({ state: 'RUNNING', finishedAt: null });
    expect(now.progress).toMatchObject({ current: 1.25, total: 4, unit: 'jobs', fraction: 1.25 / 4 });
    await worker.complete(g.job('b'));
    await worker.complete(g.job('c'));
    await worker.complete(g.job('d'));
    const ended = await read(g.id);
    expect(ended).toMatchObject({ state: 'COMPLETED', progress: { current: 4, fraction: 1 } });
    expect(ended.version).toBeGreaterThan(now.version);
    const last = (await ask('query ($id: ID!) { job(id: $id) { finishedAt } }', { id: g.job('d') })).job;
    expect(ended.finishedAt).toBe(last.finishedAt);
  });

  test('one that failed makes a failed graph, as the policies of its edges say', async () => {
    const g = await graphOf({ nodes: DIAMOND });
    await worker.complete(g.job('a'));
    await worker.complete(g.job('b'));
    await worker.fail(g.job('c'));
    await becomes(g.id, 'FAILED');
    const { nodes: left } = await read(g.id);
    expect(left.map((n: { job: { state: string } }) => n.job.state)).toEqual([
      'COMPLETED',
      'COMPLETED',
      'FAILED',
      'FAILED',
    ]);
  });

  const tooMany = nodes(...Array.from({ length: 1_001 }, (_, i): Node => [`n${i}`]));
  test.each([
    ['a cycle', nodes(['a', 'b'], ['b', 'a']), 'nodes.a', 'nodes.a.dependsOn'],
    ['a node that depends on itself', nodes(['a', 'a']), 'nodes.a', 'nodes.a.dependsOn'],
    ['an unknown node', nodes(['a', 'x']), 'nodes.a', 'nodes.a.dependsOn'],
    ['a name twice', nodes(['a'], ['a']), 'nodes.a', 'nodes.a'],
    ['no name', nodes(['']), null, 'nodes[0].name'],
    ['no node', [], null, 'nodes'],
    ['too many nodes', tooMany, null, 'nodes'],
    [
      'a bad job',
      [...nodes(['a']), { name: 'b', job: { task: 'echo', priority: 999 } }],
      'nodes.b',
      'nodes.b.priority',
    ],
    [
      'a bad backoff',
      [{ name: 'b', job: { task: 'echo', backoff: { type: 'FIXED', delay: '1s', jitter: 7 } } }],
      'nodes.b',
      'nodes.b.backoff.jitter',
    ],
  ])('%s is InvalidInput that says where', async (_, given, path, issue) => {
    const refused = await submitGraph({ nodes: given });
    expect(refused).toMatchObject({ __typename: 'InvalidInput', path });
    expect(refused.issues[0].path).toBe(issue);
  });

  test('other refusals name the node, too; an id that is none is an error of the document', async () => {
    const only = (job: Record<string, unknown>) =>
      submitGraph({ nodes: [{ name: 'b', job: { task: 'echo', ...job } }] });
    expect(await only({ task: 'nope' })).toMatchObject({ __typename: 'UnknownTask', path: 'nodes.b' });
    const missing = publicId('Job', newUuid());
    expect(await only({ dependsOn: [{ jobId: missing }] })).toMatchObject({
      __typename: 'NotFound',
      path: 'nodes.b',
      id: missing,
    });
    const { jobId } = await service.engine.jobs.submit(me, { task: 'echo', idempotencyKey: 'taken', input: 1 });
    expect(await only({ idempotencyKey: 'taken', input: 2 })).toMatchObject({
      __typename: 'IdempotencyConflict',
      path: 'nodes.b',
      job: { id: publicId('Job', jobId) },
    });
    const wrong = await service.post(SUBMIT, {
      input: { nodes: [{ name: 'b', job: { task: 'echo', dependsOn: [{ jobId: 'gra_x' }] } }] },
    });
    expect(wrong.errors?.[0]).toMatchObject({
      message: expect.stringContaining('nodes.b.dependsOn[0].jobId'),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  });

  test('a key gives the same graph again, and refuses another', async () => {
    const first = await submitGraph({ idempotencyKey: 'nightly', nodes: DIAMOND });
    const again = await submitGraph({ idempotencyKey: 'nightly', nodes: DIAMOND });
    expect(again).toMatchObject({ deduplicated: true, graph: { id: first.graph.id } });
    const other = await submitGraph({ idempotencyKey: 'nightly', nodes: nodes(['a']) });
    expect(other).toMatchObject({ __typename: 'GraphIdempotencyConflict', graph: { id: first.graph.id }, path: null });
    expect(other.givenDigest).not.toBe(other.storedDigest);
  });

  test('a node whose key stands for a job is that job, which keeps its own graph', async () => {
    const { jobId } = await service.engine.jobs.submit(me, { task: 'echo', idempotencyKey: 'shared' });
    const { graph } = await submitGraph({
      nodes: [{ name: 'own', job: { task: 'echo', idempotencyKey: 'shared' } }, ...nodes(['b', 'own'])],
    });
    expect(graph.nodes[0]).toMatchObject({
      deduplicated: true,
      job: { id: publicId('Job', jobId), graph: null },
    });
    expect(graph.nodes[1]).toMatchObject({ deduplicated: false, job: { state: 'DEFERRED', graph: { id: graph.id } } });
  });

  test('of a graph past retention the nodes that are gone are left out, and nothing is null that may not be', async () => {
    const g = await graphOf({ nodes: nodes(['a'], ['b', 'a']) });
    const gone = async (name: string) => {
      for (const table of ['jobs', 'job_states']) {
        await service.database.work.query(`delete from waymark.${table} where id = $1::uuid`, [
          parseId('Job', g.job(name)),
        ]);
      }
    };
    await gone('a');
    const half = await read(g.id);
    expect(half.nodes.map((n: { name: string }) => n.name)).toEqual(['b']);
    expect(half.progress.total).toBe(1);
    const b = await ask('query ($id: ID!) { job(id: $id) { dependencies { job { id } } dependencyCount } }', {
      id: g.job('b'),
    });
    expect(b.job).toEqual({ dependencies: [], dependencyCount: 0 });
    await gone('b');
    expect(await read(g.id)).toMatchObject({
      state: 'COMPLETED',
      version: 0,
      progress: null,
      nodes: [],
      finishedAt: null,
    });
  });

  test('an unknown graph is null, an id of something else is refused', async () => {
    expect(await read(publicId('Graph', newUuid()))).toBeNull();
    const { errors } = await service.post(GRAPH, { id: publicId('Job', newUuid()) });
    expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
  });

  describe('the list', () => {
    const LIST = `query ($filter: GraphFilter, $first: Int, $after: String, $last: Int, $before: String) {
      graphs(filter: $filter, first: $first, after: $after, last: $last, before: $before) {
        totalCount nodes { id title state counts { count } } edges { cursor node { id } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;
    const list = async (variables: Record<string, unknown> = {}) => (await ask(LIST, variables)).graphs;
    const titles = async (filter: Record<string, unknown>) =>
      (await list({ filter })).nodes.map((n: { title: string }) => n.title);
    const tag = newUuid().slice(-8);
    const name = (n: number | string) => `${tag} ${n}`;
    const ids: string[] = [];

    beforeAll(async () => {
      for (let i = 0; i < 5; i++) {
        ids.push(
          (await graphOf({ title: name(i), nodes: nodes(['a'], ['b', 'a']), idempotencyKey: `${tag}-k${i}` })).id,
        );
      }
    });

    test('is newest first, and its pages neither repeat nor skip, in both directions', async () => {
      const filter = { text: tag };
      const all = await list({ filter });
      expect(all.nodes.map((n: { id: string }) => n.id)).toEqual([...ids].reverse());
      expect(all.totalCount).toBe(5);
      const forward: string[] = [];
      for (let after: string | null = null; ; ) {
        const page: Awaited<ReturnType<typeof list>> = await list({ filter, first: 2, after });
        forward.push(...page.nodes.map((n: { id: string }) => n.id));
        expect(page.pageInfo.hasPreviousPage).toBe(after !== null);
        after = page.pageInfo.endCursor;
        if (!page.pageInfo.hasNextPage) break;
      }
      expect(forward).toEqual([...ids].reverse());
      const last = await list({ filter, last: 2 });
      expect(last.nodes.map((n: { id: string }) => n.id)).toEqual([ids[1], ids[0]]);
      const before = await list({ filter, last: 2, before: last.pageInfo.startCursor });
      expect(before.nodes.map((n: { id: string }) => n.id)).toEqual([ids[3], ids[2]]);
      expect(before.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: true });
    });

    test('is filtered by text, actor, time and the state that is rolled up', async () => {
      expect(await titles({ text: name(3).toUpperCase() })).toEqual([name(3)]);
      expect(await titles({ text: `${tag}-K4` })).toEqual([name(4)]);
      expect(await titles({ text: ids[2] })).toEqual([name(2)]);
      expect(await titles({ text: tag, submittedBy: 'user:nobody' })).toEqual([]);
      expect(await titles({ text: tag, createdBefore: '2001-01-01T00:00:00Z' })).toEqual([]);
      expect(await titles({ text: tag, createdAfter: '2001-01-01T00:00:00Z' })).toHaveLength(5);
      expect(await titles({ text: tag, states: [] })).toEqual([]);
      expect(await titles({ text: tag, states: ['QUEUED', 'RUNNING'] })).toHaveLength(5);
      const failed = await read(ids[1] as string);
      await worker.fail(failed.nodes[0].job.id);
      await becomes(ids[1] as string, 'FAILED');
      expect(await titles({ text: tag, states: ['FAILED'] })).toEqual([name(1)]);
      const [total] = [(await list({ filter: { text: tag, states: ['FAILED'] } })).totalCount];
      expect(total).toBe(1);
    });

    test('a page of graphs is a handful of statements, whatever its length, and so are the nodes of one', async () => {
      const statements = async (document: string, variables: object) => {
        const before = reads.statements;
        await ask(document, { ...variables });
        return reads.statements - before;
      };
      const page = `query ($filter: GraphFilter) { graphs(filter: $filter, first: 5) {
        nodes { state version progress { fraction } counts { count } edges { from } nodes { name job { state } } } } }`;
      expect(await statements(page, { filter: { text: tag } })).toBeLessThanOrEqual(4);
      const whole = `query ($id: ID!) { graph(id: $id) { nodes { job { id dependencyCount dependentCount
        dependencies(first: 5) { job { id } } dependents(first: 5) { job { id } } children(first: 2) { nodes { id } totalCount }
        graph { id } parent { id } waitingOn { detail jobCount jobs(first: 3) { id } } } } } }`;
      const long = await graphOf({
        nodes: nodes(...Array.from({ length: 40 }, (_, i): Node => [`n${i}`, ...(i ? ['n0'] : [])])),
      });
      expect(await statements(whole, { id: ids[0] })).toBeLessThanOrEqual(14);
      expect(await statements(whole, { id: long.id })).toBeLessThanOrEqual(14);
    });

    test('what is beyond a graph costs as much as a graph may have, at every level', async () => {
      const deep = `query ($id: ID!) { graph(id: $id) { nodes { job { graph { nodes { job { id } } } } } } }`;
      const { errors } = await service.post(deep, { id: ids[0] });
      expect(errors?.[0]?.extensions.code).toBe('QUERY_TOO_COMPLEX');
    });

    test.each([
      ['first beyond the limit', { first: 201 }, 'first'],
      ['both ends', { first: 1, last: 1 }, 'last'],
      ['no cursor', { after: 'nonsense' }, 'after'],
      ['a cursor of another list', { after: Buffer.from('["jobs","x","y"]').toString('base64url') }, 'after'],
      ['a text that cannot be stored', { filter: { text: 'a\u0000' } }, 'filter.text'],
    ])('%s is refused', async (_, variables, argument) => {
      const { errors } = await service.post(LIST, variables);
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', argument });
    });
  });
});
