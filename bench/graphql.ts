import { callsPerSecond, post } from './lib/http.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { compare, type FigureKind } from './lib/rounds.ts';
import { startServer } from './lib/server-process.ts';
import { withServices } from './lib/services.ts';
import { openSystem } from './systems/open.ts';
import { INPUT } from './systems/system.ts';
import { waymark } from './systems/waymark.ts';

/**
 * What the API costs: durable submits over HTTP beside the least that a server of the same parts does, and bulk submits
 * beside the bare INSERT of as many rows.
 */
const options = benchOptions();
const IN_FLIGHT = 32;
const BULK = 100;
const BULKS_IN_FLIGHT = 4;
const ROWS_AT_ONCE = 1_000;
const MS = options.short ? 500 : 4_000;

const one = {
  query: `mutation ($input: SubmitJobInput!) {
    submitJob(input: $input) { ... on SubmitJobPayload { job { id } deduplicated } }
  }`,
  variables: { input: { task: 'noop', input: INPUT } },
};
const many = {
  query: `mutation ($inputs: [SubmitJobInput!]!) {
    submitJobs(inputs: $inputs) { ... on SubmitJobsPayload { results { job { id } } } }
  }`,
  variables: { inputs: Array.from({ length: BULK }, () => ({ task: 'noop', input: INPUT })) },
};
const requests: FigureKind = { unit: 'per second', better: 'higher', digits: 0 };

await withServices(async (machine) => {
  const { database, submitter, setting } = await openSystem(waymark, machine, 'submit');
  // The first submit from Node registers the task, which the API must know.
  await submitter.submit();
  const api = await startServer(machine, new URL('./systems/waymark-api.ts', import.meta.url), [
    database.url,
    machine.redisUrl,
  ]);
  const hello = await startServer(machine, new URL('./systems/hello-server.ts', import.meta.url), []);
  await database.sql`create table public.bare (id uuid primary key, data json not null)`;
  const bareInsert = () => database.sql`
    insert into public.bare select gen_random_uuid(), ${JSON.stringify(INPUT)}::json
    from generate_series(1, ${ROWS_AT_ONCE})`;

  const comparisons = await compare(
    [
      {
        name: 'Waymark',
        async run() {
          await database.settleDown();
          return {
            'submitJob, or { hello }': await callsPerSecond(() => post(api, one), IN_FLIGHT, MS),
            'jobs by submitJobs, or bare rows':
              BULK * (await callsPerSecond(() => post(api, many), BULKS_IN_FLIGHT, MS)),
          };
        },
      },
      {
        name: 'the least',
        async run() {
          return {
            'submitJob, or { hello }': await callsPerSecond(() => post(hello, { query: '{ hello }' }), IN_FLIGHT, MS),
            'jobs by submitJobs, or bare rows': ROWS_AT_ONCE * (await callsPerSecond(bareInsert, 1, MS)),
          };
        },
      },
    ],
    { 'submitJob, or { hello }': requests, 'jobs by submitJobs, or bare rows': requests },
    options,
  );
  print(
    {
      benchmark: 'graphql',
      what: `POST /graphql with ${IN_FLIGHT} submitJob or ${BULKS_IN_FLIGHT} submitJobs of ${BULK} in flight, beside a bare graphql-yoga and a bare INSERT of ${ROWS_AT_ONCE} rows a statement`,
      settings: { Waymark: setting },
      comparisons,
    },
    machine,
    options,
  );
});
