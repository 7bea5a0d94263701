import { median } from './lib/figures.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { compare } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { createWaymark, defineTask } from './systems/built.ts';
import { waymark } from './systems/waymark.ts';

/** What reports of progress cost the handler that makes them, and whether the last one arrives. */
const options = benchOptions();
const CALLS = 20_000;
const JOBS = options.short ? 2 : 20;

await withServices(async (machine) => {
  const { url, sql } = await machine.createDatabase('progress');
  const service = await createWaymark({ databaseUrl: url, redisUrl: machine.redisUrl });
  machine.atEnd(() => service.close());
  let took: number[] = [];
  const task = defineTask({
    name: 'reports',
    run: async (ctx, input) => {
      const { reports } = input as { reports: boolean };
      const began = performance.now();
      for (let n = 1; n <= CALLS; n++) if (reports) ctx.progress({ current: n, total: CALLS });
      took.push(performance.now() - began);
    },
  });
  await service.worker({ tasks: [task], concurrency: 1 }).start();
  let done = 0;

  const run = async (reports: boolean) => {
    took = [];
    await service.submitMany(Array.from({ length: JOBS }, () => ({ task, input: { reports } })));
    done += JOBS;
    for (;;) {
      const [row] = await sql<{ n: number }[]>`
        select count(*)::int as n from waymark.job_states where state = 'COMPLETED'`;
      if (row?.n === done) break;
    }
    const [row] = await sql<{ lost: number }[]>`
      select count(*)::int as lost from waymark.job_states s join waymark.payloads p on p.job_id = s.id
      where p.data->>'reports' = 'true' and (s.progress->>'current')::int is distinct from ${CALLS}`;
    if (row?.lost !== 0) throw new Error(`${row?.lost} jobs do not show their last report`);
    return { [`${CALLS} calls`]: median(took) };
  };
  const comparisons = await compare(
    [
      { name: 'with reports', run: () => run(true) },
      { name: 'without', run: () => run(false) },
    ],
    { [`${CALLS} calls`]: { unit: 'ms', better: 'lower', digits: 2 } },
    options,
  );
  const what = `a handler that calls ctx.progress ${CALLS} times, and the same loop without the call`;
  print(
    { benchmark: 'progress', what, settings: { Waymark: waymark.settings.steps ?? '' }, comparisons },
    machine,
    options,
  );
});
