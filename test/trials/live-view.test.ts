import { afterAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createClient } from '../../src/client/index.ts';
import { publicId } from '../../src/core/ids.ts';
import { cleanUp } from '../cli/program.ts';
import { SocketClient } from '../server/clients.ts';
import { handWorker } from '../server/hand-worker.ts';
import { startService } from '../server/service.ts';
import { describePostgres } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { SLACK, trial } from './bench.ts';

afterAll(cleanUp);

const PROGRESS = 'subscription ($id: ID!) { jobProgress(id: $id) { state version isTerminal } }';
const ROUNDS = 300;
const SOCKETS = 500;

describePostgres('the live view', (store) => {
  test(`B81: whatever happens beside the subscribe, the end is told and is the last, ${ROUNDS} times`, async () => {
    const service = await startService(store.open);
    const worker = await handWorker(service);
    const client = await new SocketClient(service.url).start();
    for (let round = 0; round < ROUNDS; round++) {
      const { jobId } = await service.engine.jobs.submit(me, { task: 'echo' });
      const id = publicId('Job', jobId);
      await worker.start(id);
      const messages = client.all(`${round}`);
      client.subscribe(`${round}`, PROGRESS, { id });
      await worker.complete(id);
      const values = (await messages).map((m) => m.payload?.data?.jobProgress);
      // The last message is `complete`, and carries nothing.
      expect(values.pop()).toBeUndefined();
      expect(values.at(-1)).toMatchObject({ state: 'COMPLETED', isTerminal: true });
      const versions = values.map((v) => v.version);
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    }
  });

  test(`B82: ${SOCKETS} sockets that subscribe at once, each with its acknowledgement, are all served`, async () => {
    const service = await startService(store.open);
    await handWorker(service);
    const { jobId } = await service.engine.jobs.submit(me, { task: 'echo' });
    const clients = Array.from({ length: SOCKETS }, () => new SocketClient(service.url));
    const codes: number[] = [];
    for (const { closed } of clients) void closed.then(({ code }) => codes.push(code));
    const first = await Promise.all(
      clients.map(async (client) => {
        await client.start();
        client.subscribe('1', PROGRESS, { id: publicId('Job', jobId) });
        return client.next((m) => m.id === '1');
      }),
    );
    expect(first.every((m) => m.payload.data.jobProgress.state === 'QUEUED')).toBe(true);
    expect(codes).toEqual([]);
    expect(service.live.stats()).toMatchObject({ streams: SOCKETS, topics: 1, subscriptions: 1 });
  });

  test('B88: after each of three restarts of an API its clients are live again by themselves, without a gap', {
    timeout: 120_000,
  }, async (context) => {
    const t = await trial(context);
    const ports = { WAYMARK_POLL: '500ms' };
    const started = await t.api(ports);
    const { port } = new URL(started.url);
    await t.worker();
    const { file } = await t.ledger();
    const job = await t.client.submit('steps', { n: 2_000, ms: 100, ledger: file });
    const clients = Array.from({ length: 100 }, () =>
      createClient({ url: `http://127.0.0.1:${port}/graphql`, webSocket: WebSocket }),
    );
    context.onTestFinished(async () => void (await Promise.all(clients.map((c) => c.close()))));
    const records = clients.map((client) => {
      const seqs: number[] = [];
      const ended = (async () => {
        for await (const { seq } of client.job(job.id).events()) seqs.push(seq);
      })();
      return { seqs, ended };
    });
    let api = started;
    for (let restart = 0; restart < 3; restart++) {
      const before = records.map(({ seqs }) => seqs.length);
      await eventually(() => expect(records.every(({ seqs }, i) => seqs.length > (before[i] ?? 0))).toBe(true), {
        timeoutMs: 30_000 + SLACK,
      });
      api.kill('SIGTERM');
      await api.ended;
      api = await t.api({ ...ports, PORT: port });
    }
    await t.client.cancel(job.id);
    await within(30_000, Promise.all(records.map(({ ended }) => ended)), 'the end of all streams');
    const [{ last } = { last: 0 }] = await t.sql<{ last: number }[]>`
      select last_seq as last from waymark.job_states where id = ${t.uuid(job.id)}`;
    for (const { seqs } of records) expect(seqs).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  });
});
