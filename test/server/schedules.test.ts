import { beforeAll, describe, expect, test } from 'vitest';
import { publicId } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { taskNamed } from '../support/factory.ts';
import { type Service, startService } from './service.ts';

const FIELDS = `id name task input cron overlap title queue priority tags maxAttempts timeout concurrencyKey timezone
  enabled nextRunAt lastRunAt lastJob { id submittedBy schedule { name } } upcoming(first: 3)`;
const SAVE = `mutation ($input: ScheduleInput!) { saveSchedule(input: $input) { __typename
  ... on SaveSchedulePayload { schedule { ${FIELDS} } }
  ... on UserError { code message }
  ... on InvalidInput { issues { path message } }
  ... on UnknownTask { known }
} }`;
const RUN = `mutation ($name: String!) { runSchedule(name: $name) { __typename
  ... on SubmitJobPayload { job { id title schedule { id name } } deduplicated } ... on NotFound { id } } }`;
const DELETE = `mutation ($name: String!) { deleteSchedule(name: $name) { __typename
  ... on DeleteSchedulePayload { name } ... on NotFound { id } } }`;

describe.each(databases())('schedules of the API on $name', ({ open }) => {
  let service: Service;
  beforeAll(async () => {
    service = await startService(open);
    const inputSchema = { type: 'object', properties: { days: { type: 'integer' } } };
    await service.worker([
      taskNamed('report', { queue: 'slow', priority: 5, maxAttempts: 7, timeoutMs: 60_000, inputSchema }),
    ]);
  });

  async function ask(query: string, variables: Record<string, unknown> = {}) {
    const { data, errors } = await service.post(query, variables);
    expect(errors).toBeUndefined();
    return data;
  }

  test('are saved, read by name, list and id, run and removed', async () => {
    const input = {
      name: 'weekly',
      task: 'report',
      input: { days: 7 },
      cron: '30 2 * * MON',
      timezone: 'Europe/Berlin',
    };
    const { saveSchedule } = await ask(SAVE, { input });
    expect(saveSchedule).toEqual({
      __typename: 'SaveSchedulePayload',
      schedule: {
        ...input,
        id: expect.stringMatching(/^sch_/),
        overlap: 'SKIP',
        title: 'report',
        queue: 'slow',
        priority: 5,
        tags: [],
        maxAttempts: 7,
        timeout: '1m',
        concurrencyKey: null,
        enabled: true,
        nextRunAt: expect.stringMatching(/T0[01]:30:00\.000Z$/),
        lastRunAt: null,
        lastJob: null,
        upcoming: [expect.any(String), expect.any(String), expect.any(String)],
      },
    });
    const { id, nextRunAt, upcoming } = saveSchedule.schedule;
    expect(upcoming[0]).toBe(nextRunAt);
    expect(upcoming.toSorted()).toEqual(upcoming);
    expect(new Set(upcoming.map((at: string) => new Date(at).getUTCDay()))).toEqual(new Set([1]));

    const { runSchedule } = await ask(RUN, { name: 'weekly' });
    expect(runSchedule).toMatchObject({
      deduplicated: false,
      job: { title: 'report', schedule: { id, name: 'weekly' } },
    });
    const read = await ask(
      `query ($id: ID!) { schedule(name: "weekly") { lastJob { id } } schedules { name lastRunAt }
         node(id: $id) { __typename ... on Schedule { lastJob { submittedBy } } }
         jobs(filter: { scheduleId: $id }) { nodes { id } } none: schedule(name: "other") { id } }`,
      { id },
    );
    expect(read).toMatchObject({
      schedule: { lastJob: { id: runSchedule.job.id } },
      schedules: [{ name: 'weekly', lastRunAt: expect.any(String) }],
      node: { __typename: 'Schedule', lastJob: { submittedBy: 'user:local' } },
      jobs: { nodes: [{ id: runSchedule.job.id }] },
      none: null,
    });

    expect(await ask(DELETE, { name: 'weekly' })).toEqual({
      deleteSchedule: { __typename: 'DeleteSchedulePayload', name: 'weekly' },
    });
    expect((await ask(DELETE, { name: 'weekly' })).deleteSchedule).toEqual({ __typename: 'NotFound', id: 'weekly' });
    expect((await ask(RUN, { name: 'weekly' })).runSchedule).toEqual({ __typename: 'NotFound', id: 'weekly' });
    const gone = await ask(`query ($id: ID!, $job: ID!) { node(id: $id) { id } job(id: $job) { schedule { id } } }`, {
      id,
      job: runSchedule.job.id,
    });
    expect(gone).toEqual({ node: null, job: { schedule: null } });
  });

  test('a job that a schedule submitted says so', async () => {
    const { saveSchedule } = await ask(SAVE, {
      input: { name: 'nightly', task: 'report', input: {}, cron: '@daily', tags: ['n'] },
    });
    await service.database.work.query(
      `update waymark.schedules set next_run_at = clock_timestamp() where name = 'nightly'`,
    );
    expect((await service.engine.maintenance.fire()).fired).toBe(1);
    const { schedule } = await ask(`{ schedule(name: "nightly") { ${FIELDS} } }`);
    expect(schedule.lastJob).toMatchObject({ submittedBy: 'system:schedule/nightly', schedule: { name: 'nightly' } });
    expect(schedule).toMatchObject({ id: saveSchedule.schedule.id, nextRunAt: saveSchedule.schedule.nextRunAt });
    const disabled = await ask(SAVE, {
      input: { name: 'nightly', task: 'report', input: {}, cron: '@daily', enabled: false },
    });
    expect(disabled.saveSchedule.schedule).toMatchObject({ nextRunAt: null, upcoming: [], tags: [] });
  });

  test('what is wrong is a typed answer', async () => {
    const wrong = { name: 'x', task: 'report', input: { days: 'x' }, cron: '0 3 * * *' };
    expect((await ask(SAVE, { input: wrong })).saveSchedule).toMatchObject({
      __typename: 'InvalidInput',
      issues: [{ path: 'input.days' }],
    });
    expect((await ask(SAVE, { input: { ...wrong, cron: 'daily', timezone: 'Mars' } })).saveSchedule).toMatchObject({
      __typename: 'InvalidInput',
      issues: [{ path: 'cron' }, { path: 'timezone' }],
    });
    expect((await ask(SAVE, { input: { ...wrong, task: 'nothing' } })).saveSchedule).toMatchObject({
      __typename: 'UnknownTask',
      code: 'UNKNOWN_TASK',
      known: ['report'],
    });
    const { errors } = await service.post(`{ schedules { upcoming(first: 201) } schedule(name: "nightly") { id } }`);
    expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
    const unknown = await ask(`query ($id: ID!) { node(id: $id) { id } }`, {
      id: publicId('Schedule', '01900000-0000-7000-8000-000000000000'),
    });
    expect(unknown).toEqual({ node: null });
  });
});
