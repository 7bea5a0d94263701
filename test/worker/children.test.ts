import { describe, expect, test } from 'vitest';
import { publicId } from '../../src/core/ids.ts';
import type { AnyTask } from '../../src/core/task.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { type Bench, bench } from './bench.ts';

const childrenOf = async (b: Bench, parentId: string) =>
  (
    await b.database.read.query<{ id: string }>('select id from waymark.jobs where parent_id = $1::uuid order by id', [
      parentId,
    ])
  ).map((row) => row.id);

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

describe.each(databases())('children, on $name', (store) => {
  /** A child that fails in its first run, and in later ones waits for a signal. */
  function brittle() {
    const gate = deferred();
    const task = defineTask({
      name: 'brittle',
      maxAttempts: 1,
      run: async (ctx) => {
        if (ctx.job.run === 1) throw new Error('no');
        await gate.promise;
        return 'mended';
      },
    });
    return { gate, task };
  }

  test('a parent that is retried while its child runs again waits for the child', async () => {
    const b = await bench(store);
    const { gate, task } = brittle();
    const parent = defineTask({ name: 'parent', run: (ctx) => ctx.children('c', [{ task }]) });
    await b.work([parent, task]);
    const id = await b.submit(parent);
    expect((await b.ends(id)).state).toBe('FAILED');
    const [child = ''] = await childrenOf(b, id);
    await b.engine.jobs.retry(me, child);
    await b.reaches(child, 'RUNNING');
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'DEFERRED');
    const { attempt } = await b.job(id);
    gate.resolve();
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toEqual(['mended']);
    expect((await b.job(id)).attempt).toBe(attempt + 1);
  });

  /** Asks for an approval behind its children, and gives their states. */
  const askBehind = (task: AnyTask) =>
    defineTask({
      name: 'parent',
      run: async (ctx) => {
        const children = ctx.children('c', [{ task }], { onFailure: 'return' });
        await children;
        await ctx.approval('go', { title: 'Go on?' });
        return (await children).map((child) => child.state);
      },
    });

  /** Waits until the parent has gone on behind its child and asks for its approval, and retries the child alone. */
  async function retriedAlone(b: Bench, parent: AnyTask, task: AnyTask): Promise<{ id: string; child: string }> {
    await b.work([parent, task]);
    const id = await b.submit(parent);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    const [child = ''] = await childrenOf(b, id);
    await b.engine.jobs.retry(me, child);
    return { id, child };
  }

  const goOn = (b: Bench, id: string) =>
    b.engine.approvals.decide({ ...me, actor: 'user:ada' }, { jobId: id, key: 'go' }, 'APPROVED', {});

  test('a parent that went on behind a failed child meets it failed ever after, also when the child was mended', async () => {
    const b = await bench(store);
    const { gate, task } = brittle();
    const parent = askBehind(task);
    const { id, child } = await retriedAlone(b, parent, task);
    await b.reaches(child, 'RUNNING');
    await goOn(b, id);
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toEqual(['FAILED']);
    gate.resolve();
    await b.reaches(child, 'COMPLETED');
    // What the parent does over again begins with the child as it is by then.
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toEqual(['COMPLETED']);
  });

  test('the error of a failed child is that of the run that its parent saw', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'worse',
      maxAttempts: 1,
      run: (ctx) => Promise.reject(new Error(`run ${ctx.job.run}`)),
    });
    const parent = defineTask({
      name: 'parent',
      run: async (ctx) => {
        const caught = await ctx.children('c', [{ task }]).catch((error: Error) => error.message);
        await ctx.approval('go', { title: 'Go on?' });
        return caught;
      },
    });
    const { id, child } = await retriedAlone(b, parent, task);
    await eventually(async () => expect(await b.job(child)).toMatchObject({ state: 'FAILED', run: 2 }));
    await goOn(b, id);
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toBe(`child worse (${publicId('Job', child)}) failed: run 1`);
  });

  test('a completed child that runs again while its parent waits for people is waited for', async () => {
    const b = await bench(store);
    const gate = deferred();
    const task = defineTask({ name: 'again', run: (ctx) => (ctx.job.run === 1 ? null : gate.promise) });
    const parent = askBehind(task);
    const { id, child } = await retriedAlone(b, parent, task);
    await b.reaches(child, 'RUNNING');
    await goOn(b, id);
    await b.reaches(id, 'DEFERRED');
    const { attempt } = await b.job(id);
    gate.resolve();
    expect((await b.ends(id)).attempt).toBe(attempt + 1);
    expect(await b.result(id)).toEqual(['COMPLETED']);
  });

  /** A parent that fails as soon as its child has begun; that waits for a signal. */
  function hasty(spec: { idempotencyKey?: string } = {}) {
    const [begun, gate] = [deferred(), deferred()];
    const slow = defineTask({
      name: 'slow',
      run: (ctx) => {
        begun.resolve();
        return Promise.race([gate.promise, aborted(ctx.signal)]);
      },
    });
    const parent = defineTask({
      name: 'parent',
      maxAttempts: 1,
      run: async (ctx) => {
        const children = ctx.children('c', [{ task: slow, ...spec }]);
        if (ctx.job.run === 1) await ctx.step('s', () => begun.promise.then(() => Promise.reject(new Error('no'))));
        return children;
      },
    });
    return { gate, slow, parent };
  }

  test('a parent that begins anew cancels what it had begun, since it submits it again', async () => {
    const b = await bench(store);
    const { gate, slow, parent } = hasty();
    await b.work([parent, slow]);
    const id = await b.submit(parent);
    await b.ends(id);
    const [child = ''] = await childrenOf(b, id);
    expect((await b.job(child)).state).toBe('RUNNING');
    await b.engine.jobs.retry(me, id, { fromStart: true });
    expect(await b.ends(child)).toMatchObject({
      state: 'CANCELED',
      cancelReason: `its parent ${publicId('Job', id)} submits its children anew`,
    });
    gate.resolve();
    await b.reaches(id, 'COMPLETED');
    expect(await childrenOf(b, id)).toHaveLength(2);
  });

  test('a child with a key is the same one for a parent that begins anew', async () => {
    const b = await bench(store);
    const { gate, slow, parent } = hasty({ idempotencyKey: 'kept' });
    await b.work([parent, slow]);
    const id = await b.submit(parent);
    await b.ends(id);
    await b.engine.jobs.retry(me, id, { fromStart: true });
    await b.reaches(id, 'DEFERRED');
    gate.resolve();
    await b.reaches(id, 'COMPLETED');
    expect(await childrenOf(b, id)).toHaveLength(1);
  });

  test('parents and children that are to begin anew together: the parents submit the children again', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'leaf',
      maxAttempts: 1,
      run: (ctx) => (ctx.job.run === 1 && failing ? Promise.reject(new Error('no')) : 'done'),
    });
    let failing = true;
    const parent = defineTask({ name: 'parent', maxAttempts: 1, run: (ctx) => ctx.children('c', [{ task }]) });
    await b.work([parent, task]);
    const id = await b.submit(parent, undefined, { tags: ['t'] });
    await b.ends(id);
    const [old = ''] = await childrenOf(b, id);
    failing = false;
    const ids = [id, old];
    const done = await b.engine.bulk.retryJobs(me, { ids }, { fromStart: true });
    expect(done).toMatchObject({ matched: 2, changed: 1, remaining: 0 });
    await b.reaches(id, 'COMPLETED');
    expect(await b.job(old)).toMatchObject({ state: 'FAILED', run: 1 });
    expect(await childrenOf(b, id)).toHaveLength(2);
  });

  test('cancelSiblings cancels those of its own call only', async () => {
    const b = await bench(store);
    const { task } = brittle();
    const gate = deferred();
    const slow = defineTask({ name: 'slow', run: (ctx) => Promise.race([gate.promise, aborted(ctx.signal)]) });
    const parent = defineTask({
      name: 'parent',
      run: async (ctx) => {
        const options = { onFailure: 'cancelSiblings' } as const;
        const calls = [
          ctx.children('a', [{ task }, { task: slow, title: 'sibling' }], options),
          ctx.children('b', [{ task: slow, title: 'other' }], options),
        ];
        return (await Promise.allSettled(calls)).map(({ status }) => status);
      },
    });
    await b.work([parent, task, slow]);
    const id = await b.submit(parent);
    await b.reaches(id, 'DEFERRED');
    const jobs = await Promise.all((await childrenOf(b, id)).map((child) => b.job(child)));
    const titled = (title: string) => jobs.find((job) => job.title === title)?.id ?? '';
    const [sibling, other] = [titled('sibling'), titled('other')];
    await b.reaches(sibling, 'CANCELED');
    await b.reaches(other, 'RUNNING');
    gate.resolve();
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toEqual(['rejected', 'fulfilled']);
  });

  test.each([
    ['no task', {}, /^jobs\[1\]\.task must be made by defineTask, or be its name/],
    ['nothing at all', null, /^jobs\[1\]\.task must be made by defineTask/],
    ['a function', { task: () => 1 }, /^jobs\[1\]\.task must be made by defineTask/],
    ['an id that is none', { task: 'leaf', dependsOn: ['job_1'] }, /^jobs\[1\]\.dependsOn\[0\]/],
    ['a delay that is none', { task: 'leaf', delay: 'soon' }, /^jobs\[1\]\.delay must be a duration/],
  ])('a child with %s fails the parent at once, which says where; no child is submitted', async (_, spec, message) => {
    const b = await bench(store);
    const leaf = defineTask({ name: 'leaf', run: () => 1 });
    const parent = defineTask({ name: 'parent', run: (ctx) => ctx.children('c', [{ task: leaf }, spec as never]) });
    await b.work([parent, leaf]);
    const id = await b.submit(parent);
    const { state, attempt, error } = await b.ends(id);
    expect([state, attempt, error?.code]).toEqual(['FAILED', 1, 'INVALID_OPTION']);
    expect(error?.message).toMatch(message);
    expect(await childrenOf(b, id)).toEqual([]);
  });

  test('children with equal keys are one job, and each place has its result', async () => {
    const b = await bench(store);
    const leaf = defineTask({ name: 'leaf', run: (_ctx, input: number) => input });
    const parent = defineTask({
      name: 'parent',
      run: (ctx) =>
        ctx.children('c', [
          { task: leaf, input: 1, idempotencyKey: 'one' },
          { task: leaf, input: 2 },
          { task: leaf, input: 1, idempotencyKey: 'one' },
        ]),
    });
    await b.work([parent, leaf]);
    const id = await b.submit(parent);
    expect((await b.ends(id)).state).toBe('COMPLETED');
    expect(await b.result(id)).toEqual([1, 2, 1]);
    expect(await childrenOf(b, id)).toHaveLength(2);
  });

  test.each(['by its key', 'by what it depends on'])(
    'a circle %s is refused, and nobody waits for ever',
    async (how) => {
      const b = await bench(store);
      const tasks: { top?: AnyTask } = {};
      const leaf = defineTask({ name: 'leaf', run: () => 1 });
      const middle = defineTask({
        name: 'middle',
        run: (ctx, above: string) =>
          ctx.children('c', [
            how === 'by its key'
              ? { task: tasks.top as typeof leaf, idempotencyKey: 'TOP' }
              : { task: leaf, dependsOn: [{ jobId: above }] },
          ]),
      });
      const top = defineTask({ name: 'top', run: (ctx) => ctx.children('c', [{ task: middle, input: ctx.job.id }]) });
      tasks.top = top;
      await b.work([top, middle, leaf]);
      const id = await b.submit(top, undefined, { idempotencyKey: 'TOP' });
      expect((await b.ends(id)).state).toBe('FAILED');
      const [child = ''] = await childrenOf(b, id);
      const { error } = await b.job(child);
      expect(error).toMatchObject({ retryable: false });
      expect(error?.message).toContain(`jobs[0]`);
      expect(error?.message).toContain(`${publicId('Job', id)}, which waits for this job`);
      await b.engine.jobs.retry(me, id);
      await eventually(async () => expect(await b.job(id)).toMatchObject({ state: 'FAILED', run: 2 }));
    },
  );

  test('cancelSiblings leaves a job alone that stands for a key and is somebody else’s', async () => {
    const b = await bench(store);
    const gate = deferred();
    const slow = defineTask({ name: 'slow', run: () => gate.promise.then(() => 'done') });
    const { task } = brittle();
    const parent = defineTask({
      name: 'parent',
      run: (ctx) =>
        ctx.children('c', [{ task }, { task: slow, idempotencyKey: 'shared' }], { onFailure: 'cancelSiblings' }),
    });
    await b.work([parent, task, slow]);
    const other = await b.submit(slow, undefined, { idempotencyKey: 'shared' });
    await b.reaches(other, 'RUNNING');
    const id = await b.submit(parent);
    await b.reaches(id, 'DEFERRED');
    const [child = ''] = await childrenOf(b, id);
    await b.ends(child);
    gate.resolve();
    expect((await b.ends(other)).state).toBe('COMPLETED');
    expect((await b.ends(id)).error?.code).toBe('CHILD_FAILED');
  });

  test('a child with the concurrency key of a job that waits for it is refused', async () => {
    const b = await bench(store);
    const leaf = defineTask({ name: 'leaf', run: () => 1 });
    const middle = defineTask({
      name: 'middle',
      run: (ctx) => ctx.children('c', [{ task: leaf, concurrencyKey: 'k' }]),
    });
    const top = defineTask({ name: 'top', run: (ctx) => ctx.children('c', [{ task: middle }]) });
    await b.work([top, middle, leaf]);
    const [direct, above] = [
      await b.submit(middle, undefined, { concurrencyKey: 'k' }),
      await b.submit(top, undefined, { concurrencyKey: 'k' }),
    ];
    expect((await b.ends(direct)).error?.message).toContain(
      'jobs[0]: has the concurrencyKey of the job that waits for it',
    );
    expect((await b.ends(above)).state).toBe('FAILED');
    const [child = ''] = await childrenOf(b, above);
    expect((await b.job(child)).error?.message).toContain('has the concurrencyKey of job_');
  });
});
