import { beforeAll, describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import type { Executor } from '../../src/db/types.ts';
import { DEFAULT_DOCUMENT_LIMITS } from '../../src/server/graphql.ts';
import { createHealthServer } from '../../src/server/health.ts';
import { databases } from '../support/database.ts';
import { taskNamed } from '../support/factory.ts';
import { type Answer, type Service, startService } from './service.ts';

const SUBMIT = 'mutation { submitJob(input: { task: "echo" }) { ... on SubmitJobPayload { job { id } } } }';
const json = { 'content-type': 'application/json' };

describe.each(databases())('the HTTP edge on $name', ({ open }) => {
  let service: Service;
  beforeAll(async () => {
    service = await startService(open, { server: { allowedOrigins: ['https://app.example'] } });
    await service.worker([taskNamed('echo')]);
  });

  /** Another server on the same database. */
  const shared = () => ({ database: service.database });
  const request = (path: string, init: RequestInit = {}) => fetch(service.url + path, init);
  const post = (body: string, headers: Record<string, string> = json) =>
    request('/graphql', { method: 'POST', headers, body });
  const answer = async (response: Response) => (await response.json()) as Answer;
  const jobs = async () => (await service.post('{ jobs { totalCount } }')).data.jobs.totalCount;

  describe('a mutation cannot be sent by a page that nobody asked', () => {
    test('not by GET: 405', async () => {
      const before = await jobs();
      const response = await request(`/graphql?query=${encodeURIComponent(SUBMIT)}`);
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('POST');
      expect(await jobs()).toBe(before);
    });

    test.each([
      ['a form', 'application/x-www-form-urlencoded', `query=${encodeURIComponent(SUBMIT)}`],
      ['text', 'text/plain', JSON.stringify({ query: SUBMIT })],
      [
        'a multipart form',
        'multipart/form-data; boundary=x',
        `--x\r\ncontent-disposition: form-data; name="operations"\r\n\r\n${JSON.stringify({ query: SUBMIT })}\r\n--x--`,
      ],
      ['GraphQL', 'application/graphql', SUBMIT],
      ['something like JSON', 'application/json-patch+json', JSON.stringify({ query: SUBMIT })],
    ])('not as %s: 415', async (_, type, body) => {
      const before = await jobs();
      const response = await post(body, { 'content-type': type });
      expect(response.status).toBe(415);
      expect((await answer(response)).errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
      expect(await jobs()).toBe(before);
    });

    test('not without a content type: 415', async () => {
      const response = await request('/graphql', {
        method: 'POST',
        body: new Uint8Array(Buffer.from(JSON.stringify({ query: SUBMIT }))),
      });
      expect(response.status).toBe(415);
    });

    test('not from a foreign origin, and a preflight is not answered', async () => {
      const before = await jobs();
      const origin = 'https://evil.example';
      const response = await post(JSON.stringify({ query: SUBMIT }), { ...json, origin });
      expect(response.status).toBe(403);
      const preflight = await request('/graphql', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
      });
      expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
      expect(await jobs()).toBe(before);
    });

    test('but from its own and from allowed ones, and by programs', async () => {
      const origins: Record<string, string>[] = [{}, { origin: service.url }, { origin: 'https://app.example' }];
      for (const headers of origins) {
        const response = await post(JSON.stringify({ query: '{ __typename }' }), { ...json, ...headers });
        expect(response.status).toBe(200);
      }
    });
  });

  test('several operations in one request are refused', async () => {
    const before = await jobs();
    const response = await post(JSON.stringify(Array.from({ length: 1_000 }, () => ({ query: SUBMIT }))));
    expect(response.status).toBe(400);
    expect(await jobs()).toBe(before);
  });

  test.each([
    ['not JSON', '{"query":', /not valid JSON/],
    ['a list of nothing', '[]', /./],
    ['null', 'null', /must be a JSON object/],
    ['a text', '"{ __typename }"', /must be a JSON object/],
    ['no query', '{}', /Must provide query/],
    ['a query that is no text', '{"query":{"a":1}}', /to be a string/],
    ['variables that are no object', '{"query":"{ __typename }","variables":[1]}', /variables/],
    ['something unknown beside', '{"query":"{ __typename }","batch":true}', /Unexpected parameter/],
    ['a syntax error', '{"query":"{ jobs("}', /Syntax Error/],
    ['an unknown field', '{"query":"{ jbos }"}', /Cannot query field/],
    ['an unknown operation', '{"query":"query A { __typename }","operationName":"B"}', /operation/],
    [
      'an endless nesting',
      `{"query":"{ __typename }","variables":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`,
      /./,
    ],
  ])('a body with %s is a typed error, without inner details', async (_, body, message) => {
    const response = await post(body);
    const text = await response.text();
    if (response.status === 200 && !text.includes('errors')) return;
    const [error] = (JSON.parse(text) as Answer).errors ?? [];
    expect(error?.message).toMatch(message);
    expect(error?.extensions.code).toMatch(/^(BAD_|GRAPHQL_|OPERATION_)/);
    expect(text).not.toMatch(/node_modules|\.ts:|stack/);
  });

  test('nesting without end in a value is the client’s mistake, also beside a long number', async () => {
    const before = await jobs();
    const query = 'mutation ($i: JSON) { submitJob(input: { task: "echo", input: $i }) { __typename } }';
    for (const inner of ['1', '12345678901234567890']) {
      const input = `${'['.repeat(100_000)}${inner}${']'.repeat(100_000)}`;
      const { data, errors } = await answer(
        await post(`{"query":${JSON.stringify(query)},"variables":{"i":${input}}}`),
      );
      if (data) expect(data.submitJob.__typename).toBe('InvalidInput');
      else expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
    }
    expect(await jobs()).toBe(before);
    expect(service.errors).toEqual([]);
  });

  test.each([
    [
      '{"query":"query ($x: JSON) { __typename }","variables":{"x":{"rows":[{"n":1},{"n":12345678901234567890}]}}}',
      'x.rows[1].n',
    ],
    ['{"query":"query ($x: JSON) { __typename }","variables":{"x":-9007199254740993}}', 'x'],
  ])('an integer beyond 2^53 is refused with its path, and not rounded', async (body, argument) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    const [error] = (await answer(response)).errors ?? [];
    expect(error?.message).toMatch(/is beyond 2\^53 and would change; send it as a string/);
    expect(error?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument });
  });

  test('long numbers that keep their digits, and digits in texts, are let through', async () => {
    const input = '{"a":"12345678901234567890","b":0.12345678901234568,"c":1e300,"d":100000000000000000000}';
    const response = await post(
      `{"query":"mutation ($i: JSON) { submitJob(input: { task: \\"echo\\", input: $i }) { ... on SubmitJobPayload { job { input } } } }","variables":{"i":${input}}}`,
    );
    expect(await response.text()).toContain(`"input":${input.replace('1e300', '1e+300')}`);
  });

  test('a body above the limit is refused, also when its length is not said', async () => {
    const big = JSON.stringify({ query: SUBMIT, variables: { x: 'x'.repeat(DEFAULT_DOCUMENT_LIMITS.bodyBytes) } });
    expect((await post(big)).status).toBe(413);
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(big));
        controller.close();
      },
    });
    const response = await request('/graphql', {
      method: 'POST',
      headers: json,
      body: chunked,
      duplex: 'half',
    } as RequestInit);
    expect(response.status).toBe(413);
  });

  describe('an operation that is too large is refused quickly, before anything is done', () => {
    const aliased = (n: number, field: string) =>
      `{ ${Array.from({ length: n }, (_, i) => `a${i}: ${field}`).join(' ')} }`;
    const nested = (n: number) => `${'waitingOn { jobs { '.repeat(n)} id ${'} } '.repeat(n)}`;
    test.each([
      ['1,000 aliased mutations', `mutation ${aliased(1_000, 'submitJob(input: { task: "echo" }) { __typename }')}`],
      ['100 aliased mutations', `mutation ${aliased(100, 'submitJob(input: { task: "echo" }) { __typename }')}`],
      ['many large pages', aliased(40, 'jobs(first: 200) { nodes { id attempts(first: 200) { nodes { number } } } }')],
      ['deep nesting', `{ jobs { nodes { ${nested(10)} } } }`],
      ['deep nesting in a fragment', `query { jobs { nodes { ...F } } } fragment F on Job { ${nested(10)} }`],
      [
        'deep nesting over fragments',
        `query { jobs { nodes { ...A } } } fragment A on Job { waitingOn { jobs { waitingOn { jobs { ...B } } } } } fragment B on Job { waitingOn { jobs { waitingOn { jobs { ...C } } } } } fragment C on Job { waitingOn { jobs { waitingOn { jobs { id } } } } }`,
      ],
      ['a cyclic fragment', 'query { jobs { nodes { ...A } } } fragment A on Job { waitingOn { jobs { ...A } } }'],
      ['a large document', `{ ${'__typename '.repeat(90_000)} }`],
      ['many directives', `{ __typename ${'@skip(if: false) '.repeat(10_000)} }`],
      ['many directives, few tokens', `{ __typename ${'@a '.repeat(200)} }`],
      ['pages of pages', '{ jobs(first: 200) { nodes { events(first: 1000) { nodes { seq } } } } }'],
      ['a large list in the document', `{ nodes(ids: [${'"job_x" '.repeat(50_000)}]) { id } }`],
      [
        'deep lists in the document',
        `mutation { submitJob(input: { task: "echo", input: ${'['.repeat(2_900)}${']'.repeat(2_900)} }) { __typename } }`,
      ],
    ])('%s', async (_, query) => {
      const before = await jobs();
      const start = performance.now();
      const { errors, data } = await service.post(query);
      const took = performance.now() - start;
      expect(data ?? null).toBeNull();
      expect(errors?.[0]?.extensions.code).toMatch(/^(QUERY_TOO_COMPLEX|GRAPHQL_VALIDATION_FAILED)$/);
      expect(took).toBeLessThan(1_000);
      expect(await jobs()).toBe(before);
    });

    test('what people really ask is let through', async () => {
      const job =
        'id task title state progress { stage fraction } attempts(first: 5) { nodes { number outcome error { code } } } waitingOn { kind detail }';
      const { errors } = await service.post(
        `{ jobs(first: 200) { nodes { ${job} events(last: 5) { nodes { seq summary } } } } queues { name counts { state count } } }`,
      );
      expect(errors).toBeUndefined();
    });
  });

  test('introspection and suggestions are there, unless they are switched off', async () => {
    const queries = [
      '{ __schema { types { name } } }',
      '{ __type(name: "Job") { name } }',
      '{ jbos { nodes { id } } }',
      '{ jobs(orderBy: CREATED) { totalCount } }',
      'query ($o: JobOrder) { jobs(orderBy: $o) { totalCount } }',
    ];
    const closed = await startService(open, { ...shared(), server: { introspection: false } });
    for (const query of queries) {
      const { data, ...rest } = await closed.post(query, { o: 'CREATED' });
      expect(JSON.stringify(rest)).not.toMatch(/Did you mean/);
      expect(data ?? null).toBeNull();
    }
    expect((await service.post(queries[0] ?? '')).data.__schema.types.length).toBeGreaterThan(10);
    expect((await service.post(queries[2] ?? '')).errors?.[0]?.message).toMatch(/Did you mean "jobs"/);
  });

  test('who asks is user:NAME or key:NAME; groups and the service itself cannot ask', async () => {
    const wrong = [
      'system:expiry',
      'group:editors',
      'ada',
      'user:',
      'user: a',
      'a b',
      `user:${'x'.repeat(96)}`,
      '"',
      'ü',
    ];
    for (const actor of wrong) {
      const { status, errors } = await service.post('{ viewer { actor } }', {}, { 'x-waymark-actor': actor });
      expect(status).toBe(400);
      expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'x-waymark-actor' });
      expect(errors?.[0]?.message).toMatch(/^x-waymark-actor must be user:NAME or key:NAME/);
    }
    for (const actor of ['user:ada', 'key:ci/nightly']) {
      const { data } = await service.post('{ viewer { actor } }', {}, { 'x-waymark-actor': actor });
      expect(data.viewer.actor).toBe(actor);
    }
  });

  test('a name that points here is not taken for the service’s own', async () => {
    const { port } = new URL(service.url);
    const ask = (host: string) =>
      new Promise<number>((resolve, reject) => {
        import('node:http').then(({ get }) => {
          get({ port, host: '127.0.0.1', path: '/graphql?query={__typename}', headers: { host } }, (r) => {
            r.resume();
            resolve(r.statusCode ?? 0);
          }).on('error', reject);
        });
      });
    expect(await ask(`evil.example:${port}`)).toBe(403);
    expect(await ask(`localhost:${port}`)).toBe(200);
    expect(await ask('app.example')).toBe(200);
  });

  describe('pages and health', () => {
    test('GraphiQL is for browsers, unless it is switched off', async () => {
      const headers = { accept: 'text/html' };
      const page = await request('/graphql', { headers });
      expect(page.headers.get('content-type')).toMatch(/^text\/html/);
      expect(await page.text()).toContain('mutation Submit(');
      const plain = await startService(open, { ...shared(), server: { graphiql: false } });
      expect(await (await fetch(`${plain.url}/graphql`, { headers })).text()).not.toContain('<html');
      expect(await (await fetch(`${plain.url}/`)).text()).not.toContain('GraphiQL');
    });

    test('/ says what is here, and what is not here is 404', async () => {
      const page = await request('/');
      expect(page.status).toBe(200);
      expect(await page.text()).toContain('href="graphql"');
      expect((await request('/nothing')).status).toBe(404);
      expect((await request('/', { method: 'POST' })).status).toBe(404);
    });

    test('/healthz is about the process, /readyz about the database', async () => {
      expect((await request('/healthz')).status).toBe(200);
      const ready = await request('/readyz');
      expect([ready.status, await ready.json()]).toEqual([
        200,
        { ready: true, database: 'reachable', migration: expect.any(String) },
      ]);
    });

    test.each<[string, Executor, object]>([
      ['away', { query: () => Promise.reject(new Unavailable()) }, { database: 'unreachable' }],
      ['silent', { query: () => new Promise(() => {}) }, { database: 'unreachable' }],
      ['empty', { query: async <Row>() => [{ there: false }] as Row[] }, { database: 'reachable', migration: null }],
    ])('not ready while the database is %s', async (_, read, wanted) => {
      const server = createHealthServer({ host: '127.0.0.1', port: 0, read });
      await server.listen();
      const [health, ready] = await Promise.all([fetch(`${server.url}/healthz`), fetch(`${server.url}/readyz`)]);
      expect([health.status, ready.status]).toEqual([200, 503]);
      expect(await ready.json()).toMatchObject({ ready: false, ...wanted });
      await server.close();
    });
  });

  describe('when something fails', () => {
    test('a store that is away is UNAVAILABLE, at once', async () => {
      const away = await startService(open, { ...shared(), read: { query: () => Promise.reject(new Unavailable()) } });
      const { errors, data } = await away.post('{ jobs { totalCount } }');
      expect(data ?? null).toBeNull();
      expect(errors).toEqual([expect.objectContaining({ path: ['jobs'], extensions: { code: 'UNAVAILABLE' } })]);
      expect(away.errors).toEqual([]);
    });

    test('a defect is masked and logged', async () => {
      const secret = Object.assign(new Error('relation "secret" does not exist'), { code: '42P01', query: 'select' });
      const broken = await startService(open, { ...shared(), read: { query: () => Promise.reject(secret) } });
      const response = await fetch(`${broken.url}/graphql`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ query: '{ viewer { actor } jobCounts { count } }' }),
      });
      const text = await response.text();
      expect(JSON.parse(text).errors).toEqual([
        {
          message: 'Unexpected error.',
          locations: expect.anything(),
          path: ['jobCounts'],
          extensions: { code: 'INTERNAL_SERVER_ERROR' },
        },
      ]);
      expect(text).not.toMatch(/secret|42P01|select|stack/);
      expect(broken.errors).toEqual([
        { message: 'a request failed unexpectedly', data: { err: secret, path: ['jobCounts'] } },
      ]);
    });
  });
});
