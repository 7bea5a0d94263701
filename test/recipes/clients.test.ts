import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openProxy } from '../client/proxy.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type Job, type JobEvent, recipes } from './recipes.ts';
import { runningJob, saveOverBreaks } from './rough-line.ts';

const SLOW = { timeoutMs: 30_000 };
const NOBODY = 'job_00000000000000000000000000';

describe.each(databases())('recipes on $name', { timeout: 90_000 }, ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  const fail = (error: unknown) => expect.unreachable(String(error));
  const nothingIsLeft = () =>
    eventually(() => {
      expect(service.live.stats().streams).toBe(0);
      expect(service.server.stats().sockets).toBe(0);
    }, SLOW);

  describe.each(recipes)('$recipe', (recipe) => {
    async function scene() {
      const proxy = await openProxy(service.url);
      const page = recipe.open(proxy.url);
      const ends: (() => void)[] = [];
      const end = () => {
        for (const stop of ends.splice(0)) stop();
      };
      onTestFinished(end);
      return { proxy, page, ends, end };
    }

    test('over any number of broken sockets each event comes once and in order, up to the terminal one', async () => {
      const { proxy, page } = await scene();
      const job = await runningJob(service, worker);
      const events: JobEvent[] = [];
      const late: JobEvent[] = [];
      page.events(job.id, (event) => events.push(event), fail);
      await saveOverBreaks(job, proxy, () => events.length);
      // Who comes later has them all as well.
      page.events(job.id, (event) => late.push(event), fail);
      await eventually(() => expect(late.length).toBeGreaterThan(0), SLOW);
      proxy.cut();
      await worker.complete(job.id);
      const all = Array.from({ length: job.seq() + 1 }, (_, i) => i + 1);
      for (const seen of [events, late]) {
        await eventually(() => expect(seen.at(-1)).toMatchObject({ type: 'JobCompleted', state: 'COMPLETED' }), SLOW);
        expect(seen.map(({ seq }) => seq)).toEqual(all);
      }
      expect(proxy.seen.upgrades).toBeGreaterThan(3);
      await nothingIsLeft();
    });

    test('a gauge never goes back over breaks, and ends at the end', async () => {
      const { proxy, page, ends } = await scene();
      const { id } = await runningJob(service, worker);
      const seen: Job[] = [];
      ends.push(page.job(id, (job) => seen.push(job), fail));
      const shows = (part: number) => eventually(() => expect(seen.at(-1)?.progress?.fraction).toBe(part), SLOW);
      for (let n = 1; n <= 4; n++) {
        await worker.report(id, n, 8);
        await shows(n / 8);
        proxy.cut();
        // While nobody listens.
        await worker.report(id, n + 0.5, 8);
        if (n % 2) await shows((n + 0.5) / 8);
      }
      await worker.fail(id);
      await eventually(() => expect(seen.at(-1)?.state).toBe('FAILED'), SLOW);
      const versions = seen.map(({ version }) => version);
      expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    });

    test('a list is what the query says, whatever happened while the sockets were broken', async () => {
      const { proxy, page, ends, end } = await scene();
      const tag = `list ${crypto.randomUUID()}`;
      const filter = { tags: [tag], states: ['RUNNING'] };
      let shown: readonly Job[] | undefined;
      ends.push(page.jobs(filter, (jobs) => (shown = jobs), fail));
      const isRight = () =>
        eventually(async () => {
          const query = `query ($filter: JobFilter) {
            jobs(filter: $filter, first: 50) { nodes { id title version state progress { fraction } } }
          }`;
          const { data } = await service.post(query, { filter });
          expect(shown?.map(({ id, version, state, progress }) => [id, version, state, progress?.fraction])).toEqual(
            data.jobs.nodes.map((job: Job) => [job.id, job.version, job.state, job.progress?.fraction]),
          );
        }, SLOW);
      await isRight();
      const [a, b] = [await runningJob(service, worker, [tag]), await runningJob(service, worker, [tag])];
      await isRight();
      await worker.report(a.id, 1, 2);
      await isRight();
      expect(shown).toHaveLength(2);

      proxy.isDown = true;
      proxy.cut();
      await worker.complete(b.id);
      await runningJob(service, worker, [tag]);
      proxy.isDown = false;
      await isRight();
      // The socket is well again, the answers do not come through at first.
      proxy.requests = proxy.streams = 'refuse';
      const before = proxy.seen.requests + proxy.seen.streams;
      await worker.complete(a.id);
      await eventually(() => expect(proxy.seen.requests + proxy.seen.streams).toBeGreaterThan(before + 1), SLOW);
      proxy.requests = proxy.streams = 'pass';
      await isRight();
      expect(shown).toHaveLength(1);
      end();
      await nothingIsLeft();
    });

    test('what is not there is an error, and is not asked for again', async () => {
      const { proxy, page } = await scene();
      const errors: unknown[] = [];
      page.events(
        NOBODY,
        () => fail('an event'),
        (error) => errors.push(error),
      );
      page.job(
        NOBODY,
        () => fail('a job'),
        (error) => errors.push(error),
      );
      await eventually(() => expect(errors).toHaveLength(2));
      await nothingIsLeft();
      expect(errors.map(String)).toEqual([1, 2].map(() => expect.stringContaining(`${NOBODY} was not found`)));
      expect(proxy.seen.upgrades).toBe(1);
    });

    test('following can be ended from within the last event', async () => {
      const { page } = await scene();
      const { id } = await runningJob(service, worker);
      await worker.complete(id);
      for (let n = 0; n < 3; n++) {
        await new Promise<void>((resolve) => {
          const onEvent = ({ seq }: JobEvent) => {
            if (seq < 3) return;
            stop();
            resolve();
          };
          const stop = page.events(id, onEvent, fail);
        });
      }
      await nothingIsLeft();
    });

    test('what is no longer followed is no longer sent', async () => {
      const { page, ends, end } = await scene();
      const job = await runningJob(service, worker);
      const events: JobEvent[] = [];
      ends.push(page.events(job.id, (event) => events.push(event), fail));
      ends.push(page.job(job.id, () => {}, fail));
      ends.push(page.jobs({ ids: [job.id] }, () => {}, fail));
      await eventually(() => expect(events).toHaveLength(2));
      await eventually(() => expect(service.live.stats().streams).toBe(3));
      end();
      await nothingIsLeft();
      await worker.complete(job.id);
      expect(events).toHaveLength(2);
    });
  });
});
