import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { HandlerContext } from '../../src/worker/context.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { bench } from './bench.ts';

const other = defineTask({ name: 'other', run: () => 1 });

const WAITS: Record<string, (ctx: HandlerContext) => Promise<unknown>> = {
  approval: (ctx) => ctx.approval('x', { title: 'X', notify: () => {} }),
  sleep: (ctx) => ctx.sleep('x', '1h'),
  children: (ctx) => ctx.children('x', [{ task: other }]),
};

describe.each(databases())('what a wait may not do, on $name', (store) => {
  test.each(Object.keys(WAITS))('%s inside a step fails the job at once, and nothing was opened', async (name) => {
    const b = await bench(store);
    const task = defineTask({ name: 'inner', run: (ctx) => ctx.step('s', () => WAITS[name]?.(ctx)) });
    await b.work([task, other]);
    const id = await b.submit(task);
    expect(await b.ends(id)).toMatchObject({
      state: 'FAILED',
      error: { code: 'WAIT_INSIDE_STEP', retryable: false },
    });
    expect(await b.checkpoints(id)).toEqual([]);
    expect((await b.events(id)).map((e) => e.type)).not.toContain('ApprovalRequested');
  });

  test('a wait inside a batch without a transaction, and one inside notify, are refused alike', async () => {
    const b = await bench(store);
    const batches = defineTask({
      name: 'batches',
      run: (ctx) =>
        ctx.batches(
          'b',
          { size: 1, transaction: false, start: 0, source: () => [{ cursor: 1, value: 1 }] },
          () => ctx.sleep('x', '1h') as Promise<never>,
        ),
    });
    const notify = defineTask({
      name: 'notify',
      run: async (ctx) => {
        await ctx.approval('a', { title: 'A', notify: () => ctx.sleep('x', '1h') });
      },
    });
    await b.work([batches, notify]);
    for (const task of [batches, notify]) {
      const { error } = await b.ends(await b.submit(task));
      expect(error?.code).toBe('WAIT_INSIDE_STEP');
    }
  });

  test('a wait inside a source of data is refused, and nobody hangs', async () => {
    const b = await bench(store);
    const wait = (ctx: HandlerContext) => ctx.sleep('x', '1h');
    const item = { cursor: 1, value: 1 };
    const sources: Record<string, (ctx: HandlerContext) => unknown> = {
      'batches of a generator': (ctx) =>
        ctx.batches(
          'b',
          {
            size: 1,
            start: 0,
            source: async function* () {
              yield item;
              await wait(ctx);
            },
          },
          () => {},
        ),
      'batches of a function': (ctx) =>
        ctx.batches(
          'b',
          { size: 1, start: 0, source: () => ({ [Symbol.asyncIterator]: () => ({ next: () => wait(ctx) as never }) }) },
          () => {},
        ),
      artifact: (ctx) =>
        ctx.artifact(
          'a',
          (async function* () {
            yield 'text';
            await wait(ctx);
          })(),
        ),
    };
    const tasks = Object.entries(sources).map(([name, run]) =>
      defineTask({ name: name.replaceAll(' ', '-'), run: async (ctx) => void (await run(ctx)) }),
    );
    await b.work(tasks);
    for (const task of tasks) {
      const { state, error } = await b.ends(await b.submit(task));
      expect({ task: task.name, state, code: error?.code }).toEqual({
        task: task.name,
        state: 'FAILED',
        code: 'WAIT_INSIDE_STEP',
      });
    }
  });

  test('a step may call what does not wait, and a job may wait beside a step', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'beside',
      run: async (ctx) => {
        const [inner] = await Promise.all([
          ctx.step('outer', async () => {
            await pause(30);
            return ctx.step('inner', () => 7);
          }),
          ctx.sleep('x', '50ms'),
        ]);
        await ctx.sleep('y', '50ms');
        return inner;
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    expect((await b.ends(id)).state).toBe('COMPLETED');
    expect(await b.result(id)).toBe(7);
  });

  test('no catch and no finally runs when a suspended handler that goes on beside its wait calls again', async () => {
    const b = await bench(store);
    const said: string[] = [];
    const task = defineTask({
      name: 'race',
      run: async (ctx) => {
        try {
          await Promise.race([ctx.approval('a', { title: 'A' }), pause(300)]);
          said.push('raced');
          await ctx.step('s', () => void said.push('step'));
        } catch {
          said.push('catch');
        } finally {
          said.push('finally');
        }
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await pause(600);
    expect(said).toEqual(['raced']);
    expect((await b.job(id)).state).toBe('WAITING_FOR_REVIEW');
  });
});
