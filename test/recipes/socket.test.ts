import './browser-socket.ts';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { resumingSocket } from '../../examples/recipes/socket.ts';
import { openProxy } from '../client/proxy.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runningJob, saveOverBreaks } from './rough-line.ts';

const EVENTS = 'subscription ($id: ID!, $after: Int) { jobEvents(id: $id, after: $after) { seq } }';

describe.each(databases().slice(0, 1))('the socket of the recipes, on $name', { timeout: 90_000 }, ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  test('goes on behind what came: nothing is sent a second time, and the caller’s variables stay as they are', async () => {
    const proxy = await openProxy(service.url);
    const socket = resumingSocket(proxy.url);
    const job = await runningJob(service, worker);
    let [sent, seq] = [0, 0];
    socket.on('message', ({ type }) => {
      if (type === 'next') sent++;
    });
    const variables = { id: job.id, after: 1 };
    const ended = new Promise<void>((resolve, reject) => {
      const next = ({ data }: { data?: { jobEvents: { seq: number } } | null }) => {
        seq = data?.jobEvents.seq ?? 0;
      };
      onTestFinished(socket.subscribe({ query: EVENTS, variables }, { next, error: reject, complete: resolve }));
    });
    await saveOverBreaks(job, proxy, () => seq);
    await worker.complete(job.id);
    await ended;
    expect(seq).toBe(job.seq() + 1);
    expect(sent).toBe(seq - 1);
    expect(variables.after).toBe(1);
  });

  test('comes back however long nobody is there, also when it never was', async () => {
    const proxy = await openProxy(service.url);
    proxy.isDown = true;
    const socket = resumingSocket(proxy.url);
    let tries = 0;
    let values = 0;
    socket.on('connecting', () => tries++);
    const query = 'subscription { jobsChanged { reset } }';
    onTestFinished(
      socket.subscribe({ query }, { next: () => values++, error: (e) => expect.unreachable(String(e)), complete() {} }),
    );
    await eventually(() => expect(tries).toBeGreaterThan(3));
    proxy.isDown = false;
    await eventually(() => expect(values).toBe(1), { timeoutMs: 30_000 });
  });
});
