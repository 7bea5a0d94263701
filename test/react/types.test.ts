import { createElement } from 'react';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createClient, type Job, type WaymarkClient } from '../../src/client/index.ts';
import { createHooks, useJob, useSubmitJob } from '../../src/react/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';

const importCsv = defineTask({
  name: 'csv.import',
  input: z.object({ file: z.string() }),
  run: async () => ({ rows: 1, finishedAt: new Date() }),
});
const tick = defineTask({ name: 'tick', run: () => 'tock' });
const tasks = [importCsv, tick];
const hooks = createHooks<typeof tasks>();

// Checked by the compiler: a wrong line here fails `tsc`. The components are never rendered.
function useTyped() {
  const csv = hooks.useSubmitJob('csv.import');
  expectTypeOf(csv.submit).parameter(0).toEqualTypeOf<{ file: string }>();
  expectTypeOf(csv.data?.result).toEqualTypeOf<
    | ((o?: { signal?: AbortSignal; timeout?: string | number }) => Promise<{ rows: number; finishedAt: string }>)
    | undefined
  >();
  expectTypeOf(hooks.useWaymark()).toEqualTypeOf<WaymarkClient<typeof tasks>>();
  const explicit = useSubmitJob<typeof tasks, 'tick'>('tick');
  expectTypeOf(explicit.submit).toBeCallableWith();
  // @ts-expect-error: the input is required
  void csv.submit();
  // @ts-expect-error: no such task
  hooks.useSubmitJob('csv.export');
  // Without a registry any name and input goes.
  expectTypeOf(useSubmitJob('anything').submit).toBeCallableWith({ goes: true }, { priority: 1 });
  expectTypeOf(useJob<number>('job_1').data).toEqualTypeOf<(Job & { result?: number }) | undefined>();
}

function useProvider() {
  const client = createClient<typeof tasks>({ url: '/graphql' });
  createElement(hooks.WaymarkProvider, { client });
  // @ts-expect-error: a client is needed
  createElement(hooks.WaymarkProvider, {});
}

describe('what the hooks know from the type of the tasks', () => {
  test('names, inputs and results, by the registry', () => {
    expectTypeOf(useTyped).toBeFunction();
    expectTypeOf(useProvider).toBeFunction();
  });
});
