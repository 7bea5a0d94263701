import { describe, expect, test } from 'vitest';
import { InvalidInput, InvalidTransition } from '../../src/core/errors.ts';
import { publicId } from '../../src/core/ids.ts';
import { databases, describePostgres } from '../support/database.ts';
import { me } from '../support/factory.ts';
import { type DependencyBench, dependencyBench } from './dependency-bench.ts';

const ROUNDS = 100;

const withKey = (key: string) => ({ idempotencyKey: key, keyScope: 'UNTIL_FINISHED' as const });

/** Jobs of this key that have not ended. */
const unfinished = async (b: DependencyBench, key: string) =>
  (
    await b.database.submit.query<{ id: string }>(
      `select s.id from waymark.jobs j join waymark.job_states s on s.id = j.id
       where j.idempotency_key = $1 and s.finished_at is null`,
      [key],
    )
  ).map(({ id }) => id);

describe.each(databases())('a key until its job is finished, on $name', ({ open }) => {
  const setUp = async () => dependencyBench(await open());

  test('a job that is retried has its key again, until it has ended again', async () => {
    const b = await setUp();
    const first = await b.submit(withKey('k'));
    await b.finish(first, 'fail');
    await b.engine.jobs.retry(me, first);
    expect(await b.submit(withKey('k'))).toBe(first);
    await b.finish(first);
    expect(await b.submit(withKey('k'))).not.toBe(first);
  });

  test('a job is not retried while another one has its key; the error names that one', async () => {
    const b = await setUp();
    const first = await b.submit(withKey('k'));
    await b.finish(first, 'fail');
    const second = await b.submit(withKey('k'));
    const before = await b.row(first);
    for (const more of [{}, { fromStart: true }, { fromCheckpoint: 'none' }]) {
      const refused = await b.engine.jobs.retry(me, first, more).catch((e) => e);
      expect(refused).toBeInstanceOf(InvalidTransition);
      expect(refused.message).toContain(publicId('Job', second));
    }
    expect(await b.row(first)).toEqual(before);
    expect(await unfinished(b, 'k')).toEqual([second]);
    await b.finish(second);
    await b.engine.jobs.retry(me, first);
    expect(await b.submit(withKey('k'))).toBe(first);
  });

  test('a retry that is refused for another reason leaves the key free', async () => {
    const b = await setUp();
    const first = await b.submit(withKey('k'));
    await b.finish(first, 'fail');
    await expect(b.engine.jobs.retry(me, first, { fromCheckpoint: 'none' })).rejects.toBeInstanceOf(InvalidInput);
    expect(await b.submit(withKey('k'))).not.toBe(first);
  });

  test('of jobs of one key that are retried together one runs', async () => {
    const b = await setUp();
    const jobs: string[] = [];
    for (let i = 0; i < 3; i++) {
      jobs.push(await b.submit(withKey('k')));
      await b.finish(jobs[i] as string, 'fail');
    }
    const done = await b.engine.bulk.retryJobs(me, { idempotencyKey: 'k' });
    expect(done).toMatchObject({ matched: 3, changed: 1 });
    const [running, ...more] = await unfinished(b, 'k');
    expect(more).toEqual([]);
    expect(await b.submit(withKey('k'))).toBe(running);
  });

  test('a job that was canceled because of another stays so while its key is somebody else’s', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit({ ...b.after(x), ...withKey('k') });
    const e = await b.submit({ ...b.after(x), ...withKey('l') });
    await b.finish(x, 'fail');
    await b.becomes(d, 'CANCELED');
    const other = await b.submit(withKey('k'));
    await b.engine.jobs.retry(me, x);
    await b.becomes(e, 'DEFERRED');
    expect(await b.state(d)).toBe('CANCELED');
    expect(await b.submit(withKey('l'))).toBe(e);
    await b.finish(other);
    await b.finish(x, 'fail');
    await b.becomes(e, 'CANCELED');
    await b.engine.jobs.retry(me, x);
    await b.becomes(d, 'DEFERRED');
    expect(await b.submit(withKey('k'))).toBe(d);
  });
});

describePostgres('a key until its job is finished', ({ open }) => {
  test(`submits beside a retry never make a second unfinished job, ${ROUNDS} times`, async () => {
    const b = await dependencyBench(await open());
    const retried = { yes: 0, no: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const key = `race-${round}`;
      const first = await b.submit(withKey(key));
      await b.engine.jobs.cancel(me, first);
      const [answer, ...submitted] = await Promise.all([
        b.engine.jobs.retry(me, first).then(
          () => 'yes' as const,
          (e) => (e instanceof InvalidTransition ? ('no' as const) : Promise.reject(e)),
        ),
        b.submit(withKey(key)),
        b.submit(withKey(key)),
        b.submit(withKey(key)),
      ]);
      retried[answer]++;
      const left = await unfinished(b, key);
      expect(left).toHaveLength(1);
      expect(new Set(submitted)).toEqual(new Set(left));
      if (answer === 'yes') expect(left).toEqual([first]);
    }
    console.log('retried:', retried);
  });
});
