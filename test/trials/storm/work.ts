import { newUuid } from '../../../src/core/ids.ts';
import type { AttemptEnd, CheckpointWrite, ClaimedJob } from '../../../src/engine/types.ts';
import { me, taskNamed } from '../../support/factory.ts';
import { type Action, all, int, pick, type Sky, type StormProcess, shuffled } from './sky.ts';
import { keyed } from './submits.ts';

export const LEASE_MS = 1_500;
const MAX_HELD = 150;

async function register(p: StormProcess): Promise<void> {
  const worker = newUuid();
  const tasks = [taskNamed('storm')];
  const about = { host: 'storm', pid: 1, queues: null, tasks, slots: MAX_HELD, leaseMs: LEASE_MS };
  await p.engine.execution.registerWorker({ id: worker, ...about });
  p.worker = worker;
  p.held = [];
}

function someHeld(p: StormProcess, sky: Sky, count: number): ClaimedJob[] {
  return shuffled(sky, p.held).slice(0, count);
}

function endOf(sky: Sky, job: ClaimedJob): AttemptEnd {
  const id = { jobId: job.id, attempt: job.attempt };
  const retryable = sky.random() < 0.8;
  const error = { code: 'Error', message: 'as told', retryable, attempt: job.attempt, at: new Date().toISOString() };
  const others: AttemptEnd[] = [
    { ...id, outcome: 'FAILED', error, delayMs: int(sky, 200) },
    { ...id, outcome: 'RELEASED' },
    { ...id, outcome: 'POSTPONED', delayMs: int(sky, 200), reason: 'later' },
    { ...id, outcome: 'CANCELED' },
  ];
  return sky.random() < 0.6 ? { ...id, outcome: 'SUCCEEDED', result: '1', resultDigest: 'd' } : pick(sky, others);
}

function checkpointOf(sky: Sky, job: ClaimedJob): CheckpointWrite {
  const kind = pick(sky, ['STEP', 'VALUE'] as const);
  return { jobId: job.id, attempt: job.attempt, epoch: job.epoch, key: `${kind} ${int(sky, 5)}`, kind, data: '1' };
}

export const WORK = {
  async claim(p, sky) {
    if (p.held.length > MAX_HELD) return;
    const { worker } = p;
    const jobs = await p.engine.execution.claim(worker, { queues: null, tasks: ['storm'], limit: 1 + int(sky, 30) });
    if (worker === p.worker) p.held.push(...jobs);
  },

  async claimLimited(p, sky) {
    if (p.held.length > MAX_HELD) return;
    const { worker } = p;
    const request = { queues: null, tasks: ['storm'], limit: 1 + int(sky, 30) };
    const { jobs } = await p.engine.execution.claimLimited(worker, request);
    if (worker === p.worker) p.held.push(...jobs);
  },

  async settle(p, sky) {
    const ending = someHeld(p, sky, 1 + int(sky, 40));
    p.held = p.held.filter((job) => !ending.includes(job));
    await all(ending.map((job) => p.engine.execution.settle(endOf(sky, job))));
  },

  checkpoints: (p, sky) =>
    all(someHeld(p, sky, 20).map((job) => p.engine.execution.saveCheckpoint(checkpointOf(sky, job)))),

  async transaction(p, sky) {
    const [job] = someHeld(p, sky, 1);
    if (!job) return;
    await p.engine.execution.transaction(job.id, job.attempt, async (tx) => {
      await tx.query(`insert into public.storm (what) values ('handler')`);
      if (sky.random() < 0.5) await p.engine.jobs.submitMany(me, keyed(sky, 5), { tx });
      return checkpointOf(sky, job);
    });
  },

  progress: (p, sky) =>
    p.engine.execution.flushProgress(
      shuffled(sky, p.held).map((job) => ({ jobId: job.id, attempt: job.attempt, progress: { current: 1 } as never })),
    ),

  async beat(p) {
    const status = { leaseMs: LEASE_MS, busy: p.held.length, draining: false, blocked: false };
    const answer = await p.engine.execution.beat(p.worker, status);
    if (!answer.alive) await register(p);
  },

  /** Its jobs are left to be rescued. */
  die: (p) => register(p),
} satisfies Record<string, Action>;

export const STEERING = {
  async cancel(p, sky) {
    const jobs = shuffled(sky, sky.recent).slice(0, 5);
    await all(jobs.map((id) => p.engine.jobs.cancel(me, id)));
  },
  async retry(p, sky) {
    const jobs = shuffled(sky, sky.recent).slice(0, 3);
    await all(jobs.map((id) => p.engine.jobs.retry(me, id, { fromStart: sky.random() < 0.5 })));
  },
  async runNow(p, sky) {
    await all(
      shuffled(sky, sky.recent)
        .slice(0, 3)
        .map((id) => p.engine.jobs.runNow(me, id)),
    );
  },
} satisfies Record<string, Action>;

/** Each limit comes and goes; a pause is short, or nothing would be left to do. */
export const QUEUES = {
  async limit(p, sky) {
    const rateLimit = sky.random() < 0.5 ? { max: 1 + int(sky, 50), perMs: 1 + int(sky, 300) } : null;
    const maxRunning = sky.random() < 0.5 ? 1 + int(sky, 200) : null;
    await p.engine.queues.update(me, 'default', { rateLimit, maxRunning });
  },
  async pause(p) {
    await p.engine.queues.pause(me, 'default', { reason: 'storm' });
    await p.engine.queues.resume(me, 'default');
  },
} satisfies Record<string, Action>;

export const MAINTENANCE = {
  stage: (p) => p.engine.maintenance.stage(),
  rescue: (p) => p.engine.maintenance.rescue(),
  prune: (p) => p.engine.maintenance.prune(),
  fold: (p) => p.engine.maintenance.fold(),
  followUp: (p) => p.engine.maintenance.followUp(),
  expire: (p) => p.engine.maintenance.expire(),
} satisfies Record<string, Action>;
