import { quantile } from './lib/figures.ts';
import { FILLINGS, fill } from './lib/filling.ts';
import { post } from './lib/http.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Contender, compare, type FigureKind, type Figures } from './lib/rounds.ts';
import { startServer } from './lib/server-process.ts';
import { type Machine, withServices } from './lib/services.ts';
import { openSystem } from './systems/open.ts';
import { waymark } from './systems/waymark.ts';

/** Whether what a page asks for takes as long when the tables are full as when they hold no more than that page. */
const options = benchOptions();
const CALLS = options.short ? 20 : 300;
const PAGE = 50;
const size = (jobs: number) => (options.short ? jobs / 100 : jobs);
/** As many as that of each kind beside the finished ones. */
const OTHERS = 100_000;

const OPERATIONS = {
  'jobs, first page': `{ jobs(first: ${PAGE}) { nodes { id task title state createdAt progress { current total } } } }`,
  'jobs of a task, first page': `{ jobs(first: ${PAGE}, filter: { tasks: ["noop"] }) { nodes { id state createdAt } } }`,
  jobCounts: '{ jobCounts { state count } }',
};
const A_JOB = `query ($id: ID!) {
  job(id: $id) { id task state input createdAt attempts { nodes { number outcome } } events { nodes { seq at } } }
}`;
const kind: FigureKind = { unit: 'ms', better: 'lower', digits: 2 };

await withServices(async (machine) => {
  const [full, empty] = [await contender(machine, 'full', true), await contender(machine, 'empty', false)];
  const figures = [...Object.keys(OPERATIONS), "a job's page"];
  const comparisons = await compare([full, empty], Object.fromEntries(figures.map((f) => [f, kind])), options);
  const beside = size(1_000_000 + OTHERS * (FILLINGS.length - 1)).toLocaleString('en');
  print(
    {
      benchmark: 'reads',
      what: `POST /graphql, one at a time, median of ${CALLS}: beside ${beside} jobs, and on a database of ${PAGE}`,
      settings: { Waymark: 'one API process' },
      comparisons,
    },
    machine,
    options,
  );
});

async function contender(machine: Machine, name: string, filled: boolean): Promise<Contender> {
  const { database, submitter } = await openSystem(waymark, machine, 'submit');
  if (filled) {
    for (const filling of FILLINGS)
      await fill(database.sql, filling, size(filling.state === 'COMPLETED' ? filling.jobs : OTHERS));
  }
  // The newest of all: what a page shows is the same on both.
  await submitter.submitMany(PAGE);
  await database.settleDown();
  const args = [database.url, machine.redisUrl];
  const api = await startServer(machine, new URL('./systems/waymark-api.ts', import.meta.url), args);
  const first = JSON.parse(await post(api, { query: '{ jobs(first: 1) { nodes { id } } }' }));
  const id: string = first.data.jobs.nodes[0].id;
  return {
    name,
    async run() {
      const figures: Figures = {};
      for (const [figure, query] of Object.entries(OPERATIONS))
        figures[figure] = await typicalMs(() => post(api, { query }));
      figures["a job's page"] = await typicalMs(() => post(api, { query: A_JOB, variables: { id } }));
      return figures;
    },
  };
}

async function typicalMs(call: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < CALLS; n++) {
    const start = performance.now();
    await call();
    took.push(performance.now() - start);
  }
  return quantile(took, 0.5);
}
