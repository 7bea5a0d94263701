import './browser-socket.ts';
import { readFileSync } from 'node:fs';
import { gql } from '@apollo/client';
import { buildSchema, isInterfaceType } from 'graphql';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { connect, followJob, followJobs, JOB, JOBS, possibleTypes } from '../../examples/recipes/apollo.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runningJob } from './rough-line.ts';

test('the cache knows the members of the interfaces as the schema has them', () => {
  const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  for (const [name, members] of Object.entries(possibleTypes)) {
    const type = schema.getType(name);
    if (!isInterfaceType(type)) throw new Error(`${name} is no interface`);
    expect(members.toSorted()).toEqual(
      schema
        .getPossibleTypes(type)
        .map((member) => member.name)
        .toSorted(),
    );
  }
});

describe.each(databases().slice(0, 1))('the cache of the Apollo recipe, on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  test('it keeps what fragments on interfaces select', async () => {
    const { id } = await runningJob(service, worker);
    const { data } = await connect(`${service.url}/graphql`).query<{ job: { events: { nodes: { seq?: number }[] } } }>({
      query: gql`
        query ($id: ID!) { job(id: $id) { id events { nodes { ...Fact } } } }
        fragment Fact on JobEvent { seq }`,
      variables: { id },
    });
    expect(data?.job.events.nodes.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('what is late does not overwrite what is newer', async () => {
    const client = connect(`${service.url}/graphql`);
    const { id } = await runningJob(service, worker);
    const job = { __typename: 'Job' as const, id, title: 'newer', version: 1_000, state: 'RUNNING', progress: null };
    client.writeFragment({ id: client.cache.identify(job), fragment: JOB, data: job });
    const fail = (error: unknown) => expect.unreachable(String(error));
    const filter = { ids: [id] };
    onTestFinished(followJob(client, id, fail));
    onTestFinished(followJobs(client, filter, fail));
    await eventually(() => expect(service.live.stats().streams).toBe(2));
    await worker.report(id, 1, 2);
    await eventually(() => expect(client.readQuery({ query: JOBS, variables: { filter } })?.jobs.nodes).toEqual([job]));
  });
});
