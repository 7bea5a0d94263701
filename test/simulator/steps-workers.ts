import { newUuid } from '../../src/core/ids.ts';
import type { AttemptEnd, CheckpointWrite, ClaimedJob } from '../../src/engine/types.ts';
import type { ActionOf } from './action.ts';
import { type Bench, HOUR_MS, LEASE_MS, someWorker } from './bench.ts';
import * as model from './model-attempts.ts';
import { jobOf } from './model-clients.ts';
import { answered, attemptAt, gauge, liveWorkers, type Steps, silent, workerAt } from './step.ts';

/** The verbs of workers. */
export const workerSteps: Steps<'claim' | 'end' | 'save' | 'progress' | 'delivered' | 'boot' | 'leave' | 'beat'> = {
  claim: ({ worker, tasks, limit }, world, { engine }) => {
    const id = workerAt(world, worker);
    const request = { queues: null, tasks, limit };
    return {
      engine: () => answered(engine.execution.claim(id, request).then((jobs) => jobs.map(claimed).sort(byJob))),
      model: () => model.claim(world, id, tasks, limit),
    };
  },

  end: (action, world, { engine }) => {
    const of = attemptAt(world, action.at);
    if (!of) return null;
    const end = endOf(action, of);
    return {
      engine: () => answered(engine.execution.settle(asSent(end))),
      model: () => model.settle(world, end),
    };
  },

  save: (action, world, bench) => {
    const of = attemptAt(world, action.at);
    if (!of) return null;
    const { key, kind, n } = action;
    const data = { n, by: of.attempt };
    const save: model.Save = {
      ...of,
      epoch: jobOf(world, of.jobId)?.epoch ?? 1,
      key,
      kind: kind === 'STEP' ? kind : 'CURSOR',
      data,
      processed: kind === 'COUNTED CURSOR' ? n : null,
      ...(action.progress ? { progress: n } : {}),
      ...(action.rows ? { row: `${of.jobId} ${key} ${n}` } : {}),
    };
    return { engine: () => answered(saveIn(bench, save)), model: () => model.save(world, save) };
  },

  progress: ({ at, n }, world, { engine }) => {
    const of = attemptAt(world, at);
    if (!of) return null;
    return {
      engine: () => answered(engine.execution.flushProgress([{ ...of, progress: gauge(n) }])),
      model: () => model.progress(world, of.jobId, of.attempt, n),
    };
  },

  delivered: ({ at }, world, { engine }) => {
    const of = attemptAt(world, at);
    if (!of) return null;
    return {
      engine: () => silent(engine.execution.cancelDelivered(of.jobId, of.attempt)),
      model: () => model.cancelDelivered(world, of.jobId, of.attempt),
    };
  },

  boot: (_action, world, { engine }) => {
    if (liveWorkers(world).length > 1) return null;
    const id = newUuid();
    return {
      engine: () => silent(engine.execution.registerWorker(someWorker(id))),
      model: () => model.boot(world, id),
    };
  },

  leave: ({ worker }, world, { engine }) => {
    const id = workerAt(world, worker);
    return { engine: () => silent(engine.execution.workerStopped(id)), model: () => model.leave(world, id) };
  },

  beat: ({ worker, draining, hung }, world, { engine }) => {
    const id = workerAt(world, worker);
    const status = { busy: 0, draining, blocked: hung, hung, leaseMs: LEASE_MS };
    const beat = async () => {
      const { alive, jobs } = await engine.execution.beat(id, status);
      return { alive, jobs: jobs.sort((a, b) => (a.jobId < b.jobId ? -1 : 1)) };
    };
    return { engine: () => answered(beat()), model: () => model.beat(world, id, draining, hung) };
  },
};

/** Every result and error is its own: a mix-up of two attempts would show. */
function endOf(action: ActionOf<'end'>, of: { jobId: string; attempt: number }): model.End {
  const { outcome, n, retryable, delayHours } = action;
  const failed = outcome === 'FAILED' || outcome === 'TIMED_OUT';
  return {
    ...of,
    outcome,
    ...(outcome === 'SUCCEEDED' ? { result: `{"n":${n},"by":${of.attempt}}`, resultDigest: `digest-${n}` } : {}),
    ...(failed ? { error: { code: `E${n}`, retryable } } : {}),
    ...(failed || outcome === 'POSTPONED' ? { delayHours } : {}),
    ...(outcome === 'CANCELED' ? { forced: n === 0 } : {}),
    ...(action.progress ? { progress: n } : {}),
  };
}

function asSent({ delayHours, progress, error, ...end }: model.End): AttemptEnd {
  return {
    ...end,
    outcome: end.outcome as AttemptEnd['outcome'],
    delayMs: delayHours === undefined ? null : delayHours * HOUR_MS,
    progress: progress === undefined ? null : gauge(progress),
    error: error ? { ...error, message: 'simulated', attempt: end.attempt, at: '2026-01-01T00:00:00.000Z' } : null,
  };
}

async function saveIn({ engine }: Bench, { row, data, progress, ...save }: model.Save): Promise<unknown> {
  const write: CheckpointWrite = {
    ...save,
    data: JSON.stringify(data),
    progress: progress === undefined ? null : gauge(progress),
  };
  if (row === undefined) return engine.execution.saveCheckpoint(write);
  return engine.execution.transaction(save.jobId, save.attempt, async (tx) => {
    await tx.query('insert into public.sim_rows (row) values ($1)', [row]);
    return write;
  });
}

function claimed(job: ClaimedJob): model.Started {
  const { id, task, run, epoch, attempt, failures, maxAttempts, resumedFrom } = job;
  return { id, task, run, epoch, attempt, failures, maxAttempts, input: job.input as number, resumedFrom };
}

function byJob(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
