import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { InputIn, NameIn, ResultIn, WaymarkClient } from '../../src/client/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';

const importCsv = defineTask({
  name: 'csv.import',
  input: z.object({ file: z.string(), failEvery: z.number().optional() }),
  async run() {
    return { rows: 1, finishedAt: new Date() };
  },
});
const tick = defineTask({ name: 'tick', run: () => 'tock' });
const list = [importCsv, tick];
const module = { importCsv, default: [tick], setup: async () => {} };

// Checked by the compiler: a wrong line here fails `tsc`.
describe('what the client knows from the type of the tasks', () => {
  test('names, inputs and results come from a list of tasks', () => {
    expectTypeOf<NameIn<typeof list>>().toEqualTypeOf<'csv.import' | 'tick'>();
    expectTypeOf<InputIn<typeof list, 'csv.import'>>().toExtend<{ file: string } | undefined>();
    expectTypeOf<ResultIn<typeof list, 'csv.import'>>().toEqualTypeOf<{ rows: number; finishedAt: string }>();
  });

  test('a module is as good as a list, whatever else it exports', () => {
    expectTypeOf<NameIn<typeof module>>().toEqualTypeOf<'csv.import' | 'tick'>();
  });

  test('without a registry any name and input goes', () => {
    expectTypeOf<NameIn<unknown>>().toEqualTypeOf<string>();
    expectTypeOf<ResultIn<unknown, 'x'>>().toEqualTypeOf<unknown>();
  });

  test('an unknown name and a wrong input are errors of the compiler', () => {
    async function never(client: WaymarkClient<typeof list>, loose: WaymarkClient<unknown>) {
      await client.submit('csv.import', { file: 'a.csv' }, { priority: 1 });
      await client.submit('tick');
      await loose.submit('anything', { goes: true });
      // @ts-expect-error: the input is required
      await client.submit('csv.import');
      // @ts-expect-error: no such field
      await client.submit('csv.import', { path: 'a.csv' });
      // @ts-expect-error: no such task
      await client.submit('csv.export', {});
      expectTypeOf(await (await client.submit('tick')).result()).toEqualTypeOf<string>();
    }
    expectTypeOf(never).toBeFunction();
  });
});
