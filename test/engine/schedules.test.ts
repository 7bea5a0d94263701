import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { InvalidInput, NotFound, UnknownTask } from '../../src/core/errors.ts';
import { type Logger, silentLogger } from '../../src/core/log.ts';
import { openDatabase } from '../../src/db/open.ts';
import { scheduleByName } from '../../src/db/reads/schedules.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { ScheduleRequest } from '../../src/engine/schedule-types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';

const TASK = taskNamed('report', {
  inputSchema: { type: 'object', properties: { days: { type: 'integer' } }, required: ['days'] },
});

describe.each(databases())('schedules on $name', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;
  let errors: { data: object; message: string }[];

  function engineOn(on: TestDatabase): Engine {
    const log: Logger = {
      debug() {},
      info() {},
      warn() {},
      error: (data, message) => void errors.push({ data, message }),
    };
    return createEngine({ database: on, channel: createMemoryChannel(), options: engineOptions(), log });
  }

  beforeEach(async () => {
    errors = [];
    database = await open();
    engine = engineOn(database);
    await engine.execution.registerTasks([TASK]);
  });

  const save = (over: Partial<ScheduleRequest> = {}) =>
    engine.schedules.save(me, { name: 'nightly', task: 'report', input: { days: 1 }, cron: '0 3 * * *', ...over });
  const saved = (name = 'nightly') => scheduleByName(database.read, me.tenant, name);

  interface JobOfSchedule {
    id: string;
    submittedBy: string;
    title: string | null;
    queue: string;
    tags: string[];
  }
  const jobsOf = (name = 'nightly') =>
    database.read.query<JobOfSchedule>(
      `select j.id, j.submitted_by as "submittedBy", j.title, j.queue, j.tags
       from waymark.jobs j join waymark.schedules s on s.id = j.schedule_id where s.name = $1 order by j.id`,
      [name],
    );
  /** As if its time had come so many minutes ago. */
  const due = (minutes = 1, name = 'nightly') =>
    database.work.query(
      `update waymark.schedules set next_run_at = clock_timestamp() - $2::int * interval '1 minute' where name = $1`,
      [name, minutes],
    );
  const finish = (id: string) =>
    database.work.query(
      `update waymark.job_states set state = 'CANCELED', finished_at = clock_timestamp() where id = $1::uuid`,
      [id],
    );

  test('one that is due submits one job, as it says, and has its next time', async () => {
    const schedule = await save({
      title: 'Report',
      queue: 'slow',
      tags: ['night', 'night'],
      timezone: 'Europe/Berlin',
    });
    expect(schedule).toMatchObject({ enabled: true, overlap: 'SKIP', lastRunAt: null, lastJobId: null });
    expect(await engine.maintenance.fire()).toMatchObject({ fired: 0, nextDueMs: expect.any(Number) });
    await due();
    expect((await engine.maintenance.fire()).fired).toBe(1);
    const [job, ...more] = await jobsOf();
    expect(more).toEqual([]);
    expect(job).toMatchObject({
      submittedBy: 'system:schedule/nightly',
      title: 'Report',
      queue: 'slow',
      tags: ['night'],
    });
    const after = await saved();
    expect(after).toMatchObject({ id: schedule.id, lastJobId: job?.id, nextRunAt: schedule.nextRunAt });
    expect(after?.lastRunAt).not.toBeNull();
    const { fired, nextDueMs } = await engine.maintenance.fire();
    expect(fired).toBe(0);
    expect(nextDueMs).toBeGreaterThan(0);
    expect(nextDueMs).toBeLessThanOrEqual(24 * 3_600_000);
  });

  test('times that were missed are one', async () => {
    await save({ cron: '*/5 * * * *', overlap: 'ALLOW' });
    await due(3 * 24 * 60);
    expect((await engine.maintenance.fire()).fired).toBe(1);
    expect((await engine.maintenance.fire()).fired).toBe(0);
    expect(await jobsOf()).toHaveLength(1);
  });

  test('SKIP submits nothing while the last job is unfinished, and goes on; ALLOW does', async () => {
    await save();
    await due();
    await engine.maintenance.fire();
    const [first] = await jobsOf();
    const before = await saved();
    await due();
    expect((await engine.maintenance.fire()).fired).toBe(0);
    expect(await saved()).toMatchObject({
      lastJobId: first?.id,
      lastRunAt: before?.lastRunAt,
      nextRunAt: before?.nextRunAt,
    });
    await finish(first?.id ?? '');
    await due();
    expect((await engine.maintenance.fire()).fired).toBe(1);
    await save({ overlap: 'ALLOW' });
    await due();
    expect((await engine.maintenance.fire()).fired).toBe(1);
    expect(await jobsOf()).toHaveLength(3);
  });

  test('saved again it keeps its id and what it has done; another cron, zone or start finds its next time anew', async () => {
    const first = await save();
    await engine.schedules.run(me, 'nightly');
    await due();
    const waiting = (await saved())?.nextRunAt;
    // A program that saves its schedules at each start must not swallow a run that is due.
    const same = await save({ input: { days: 2 } });
    expect(same).toMatchObject({ id: first.id, nextRunAt: waiting, input: { days: 2 } });
    expect(same.lastJobId).not.toBeNull();
    for (const change of [{ cron: '0 4 * * *' }, { cron: '0 4 * * *', timezone: 'Asia/Kolkata' }]) {
      const before = (await saved())?.nextRunAt;
      const changed = await save(change);
      expect(changed.id).toBe(first.id);
      expect(changed.nextRunAt).not.toBe(before);
    }
    expect(await save({ enabled: false })).toMatchObject({ enabled: false, nextRunAt: null });
    expect(await engine.maintenance.fire()).toEqual({ fired: 0, nextDueMs: null });
    expect((await save()).nextRunAt).toBe(first.nextRunAt);
  });

  test('run submits at once by its caller, whatever the schedule waits for', async () => {
    await save({ enabled: false });
    const ada = { ...me, actor: 'user:ada' };
    const jobs = [await engine.schedules.run(ada, 'nightly'), await engine.schedules.run(ada, 'nightly')];
    expect((await jobsOf()).map((job) => job.id)).toEqual(jobs.map((job) => job.jobId).sort());
    expect(jobs[0]?.job).toMatchObject({ submittedBy: 'user:ada', state: 'QUEUED' });
    expect(await saved()).toMatchObject({ lastJobId: jobs[1]?.jobId, nextRunAt: null });
  });

  test('removed it fires no more; its jobs stay', async () => {
    const schedule = await save();
    const { jobId } = await engine.schedules.run(me, 'nightly');
    await due();
    await engine.schedules.remove(me, 'nightly');
    expect((await engine.maintenance.fire()).fired).toBe(0);
    const jobs = await database.read.query('select 1 from waymark.jobs where id = $1::uuid', [jobId]);
    expect(jobs).toHaveLength(1);
    await expect(engine.schedules.remove(me, 'nightly')).rejects.toBeInstanceOf(NotFound);
    await expect(engine.schedules.run(me, 'nightly')).rejects.toBeInstanceOf(NotFound);
    await expect(engine.schedules.run(me, 'a\u0000')).rejects.toBeInstanceOf(NotFound);
    expect((await save()).id).not.toBe(schedule.id);
  });

  test('another tenant neither sees nor changes it', async () => {
    await save();
    const other = { tenant: 'other', actor: 'user:eve' };
    await expect(engine.schedules.run(other, 'nightly')).rejects.toBeInstanceOf(NotFound);
    await expect(engine.schedules.remove(other, 'nightly')).rejects.toBeInstanceOf(NotFound);
    expect(await scheduleByName(database.read, 'other', 'nightly')).toBeNull();
  });

  test.each<[string, Partial<ScheduleRequest>, string[]]>([
    ['an input that the task does not take', { input: { days: 'two' } }, ['input.days']],
    ['no input where one is needed', { input: undefined }, ['input']],
    ['a cron that is none, and a zone that is none', { cron: '61 * * * *', timezone: 'Mars' }, ['cron', 'timezone']],
    ['no name', { name: '' }, ['name']],
    ['a name that cannot be stored', { name: 'a\u0000' }, ['name']],
    ['a priority out of range', { priority: 101 }, ['priority']],
    ['an input that is too large', { input: { days: 1, more: 'x'.repeat(1_000_000) } }, ['input']],
  ])('%s is refused when it is saved', async (_, over, paths) => {
    const refused = await save(over).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidInput);
    expect((refused as InvalidInput).issues.map((issue) => issue.path)).toEqual(paths);
    await expect(save({ task: 'nothing' })).rejects.toBeInstanceOf(UnknownTask);
    expect(await database.read.query('select 1 from waymark.schedules')).toEqual([]);
  });

  test('JSON null and no input are two things', async () => {
    await engine.execution.registerTasks([taskNamed('any')]);
    await save({ name: 'null', task: 'any', input: null });
    await save({ name: 'none', task: 'any', input: undefined });
    for (const name of ['null', 'none']) await engine.schedules.run(me, name);
    const rows = await database.read.query<{ name: string; given: boolean }>(
      `select s.name, exists (select 1 from waymark.payloads p where p.job_id = s.last_job_id) as given
       from waymark.schedules s order by s.name`,
    );
    expect(rows).toEqual([
      { name: 'none', given: false },
      { name: 'null', given: true },
    ]);
  });

  test('a job that is refused now keeps no other schedule, and its own goes on with its next time', async () => {
    const bad = await save({ name: 'a' });
    await save({ name: 'b' });
    await engine.execution.registerTasks([
      taskNamed('report', { inputSchema: { type: 'string' } }),
      taskNamed('other'),
    ]);
    await save({ name: 'b', task: 'other', input: null });
    await due(2, 'a');
    await due(1, 'b');
    // A definition is trusted for a second; another engine has not seen the old one.
    expect((await engineOn(database).maintenance.fire()).fired).toBe(1);
    expect(await jobsOf('b')).toHaveLength(1);
    expect(await saved('a')).toMatchObject({ lastRunAt: null, lastJobId: null, nextRunAt: bad.nextRunAt });
    expect(errors).toEqual([
      {
        data: { err: expect.any(InvalidInput), schedule: 'a', task: 'report' },
        message: expect.stringContaining('refused'),
      },
    ]);
  });

  test('one whose times cannot be found here keeps no other, and is looked at again later', async () => {
    await save({ name: 'a' });
    await save({ name: 'b' });
    await database.work.query(`update waymark.schedules set timezone = 'Mars/Olympus' where name = 'a'`);
    await due(2, 'a');
    await due(1, 'b');
    expect((await engine.maintenance.fire()).fired).toBe(2);
    expect(Date.parse((await saved('a'))?.nextRunAt ?? '')).toBeGreaterThan(Date.now() + 3_000_000);
    expect(errors).toHaveLength(1);
  });

  test('the maintenance of a process fires it when it is due, not at the next poll', async () => {
    await save();
    await database.work.query(`update waymark.schedules set next_run_at = clock_timestamp() + interval '400 ms'`);
    const loop = createMaintenanceLoop({
      maintenance: engine.maintenance,
      log: silentLogger,
      sweepMs: 60_000,
      pollMs: 60_000,
    });
    onTestFinished(() => loop.stop());
    loop.start();
    const [job] = await eventually(async () => {
      const jobs = await database.read.query<{ lateMs: number }>(
        `select extract(epoch from s.last_run_at - j.created_at)::float8 * 1000 as "lateMs"
         from waymark.jobs j join waymark.schedules s on s.id = j.schedule_id`,
      );
      expect(jobs).toHaveLength(1);
      return jobs;
    });
    expect(job?.lateMs).toBeLessThan(5_000);
  });

  test('each time gives exactly one job, with four engines at it', async () => {
    const random = seededRandom();
    const names = ['one', 'two', 'three'];
    for (const name of names) await save({ name, overlap: 'ALLOW', cron: '0 0 1 1 *' });
    const engines = [engine];
    for (let n = 0; n < 3; n++) engines.push(engineOn(database.url ? await another(database.url) : database));
    const expected = new Map(names.map((name) => [name, 0]));
    for (let round = 0; round < 100; round++) {
      for (const name of names) {
        if (random() < 0.3) continue;
        await due(1 + Math.floor(random() * 1_000), name);
        expected.set(name, (expected.get(name) ?? 0) + 1);
      }
      const fired = await Promise.all(
        engines.map(async (one) => {
          for (let n = Math.floor(random() * 3); n > 0; n--) await database.read.query('select 1');
          return (await one.maintenance.fire()).fired;
        }),
      );
      // One that is skipped since another engine holds it is that one's; nothing is left over.
      expect(await engine.maintenance.fire()).toMatchObject({ fired: 0 });
      for (const name of names) expect((await jobsOf(name)).length, `${name}, round ${round}`).toBe(expected.get(name));
      expect(fired.reduce((a, b) => a + b)).toBeLessThanOrEqual(names.length);
    }
    expect(errors).toEqual([]);
  });

  async function another(url: string): Promise<TestDatabase> {
    const opened = await openDatabase({ url });
    onTestFinished(() => opened.close());
    return Object.assign(opened, { url });
  }
});
