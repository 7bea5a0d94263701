import { runBenchmark } from './lib/benchmark.ts';
import { benchOptions } from './lib/options.ts';
import type { FigureKind, Figures } from './lib/rounds.ts';
import { bullmq } from './systems/bullmq.ts';
import { bullmqPostgres } from './systems/bullmq-postgres.ts';
import { graphile } from './systems/graphile.ts';
import { type OpenSystem, openSystem } from './systems/open.ts';
import { pgBoss } from './systems/pg-boss.ts';
import type { Submitter } from './systems/system.ts';
import { waymark } from './systems/waymark.ts';

/** How fast one process hands in jobs, each durable when its call resolves: so many calls in flight, and in bulk. */
const options = benchOptions();
const IN_FLIGHT = [1, 16, 64];
const BULK = 1_000;
/** A level ends at the first of both. */
const JOBS = options.short ? 200 : 10_000;
const BULKS = options.short ? 2 : 20;
const LEVEL_MS = options.short ? 1_000 : 3_000;

const perSecond: FigureKind = { unit: 'jobs/s', better: 'higher', digits: 0 };
const kinds = Object.fromEntries(
  [...IN_FLIGHT.map((n) => `${n} in flight`), `bulk of ${BULK}`].map((f) => [f, perSecond]),
);

await runBenchmark(
  {
    benchmark: 'submit',
    what: 'jobs handed in by one process, each durable when its call resolves (in Redis: as far as that is set to be)',
    kinds,
    systems: [waymark, graphile, bullmq, bullmqPostgres, pgBoss],
    open: (system, machine) => openSystem(system, machine, 'submit'),
    roundOf: submit,
  },
  options,
);

function submit({ database, submitter }: OpenSystem): () => Promise<Figures> {
  return async () => {
    await database.settleDown();
    const figures: Figures = {};
    for (const level of IN_FLIGHT) figures[`${level} in flight`] = await inFlight(submitter, level);
    figures[`bulk of ${BULK}`] = await inBulk(submitter);
    return figures;
  };
}

/** Jobs per second with `level` calls under way at any moment. */
async function inFlight(submitter: Submitter, level: number): Promise<number> {
  let done = 0;
  let begun = 0;
  const start = performance.now();
  const caller = async () => {
    while (begun < JOBS && performance.now() - start < LEVEL_MS) {
      begun++;
      await submitter.submit();
      done++;
    }
  };
  await Promise.all(Array.from({ length: level }, caller));
  return done / ((performance.now() - start) / 1_000);
}

async function inBulk(submitter: Submitter): Promise<number> {
  const start = performance.now();
  let done = 0;
  while (done < BULKS * BULK && performance.now() - start < LEVEL_MS) {
    await submitter.submitMany(BULK);
    done += BULK;
  }
  return done / ((performance.now() - start) / 1_000);
}
