import type { Executor } from '../../src/db/types.ts';
import { isOver, type ModelCheckpoint, type ModelJob, type World } from './model.ts';
import { hoursFrom } from './model-maintenance.ts';

/** What the tables say, in the shape that the model is shown in, too. */
export interface Snapshot {
  jobs: JobShot[];
  keys: { name: string; jobId: string; scope: string; hoursLeft: number }[];
  /** Those that are not lost: a lost worker's row goes some day. */
  workers: { id: string; state: string; leaseHours: number }[];
  rows: string[];
}

export interface JobShot {
  id: string;
  state: string;
  run: number;
  epoch: number;
  attempt: number;
  failures: number;
  maxAttempts: number;
  stalls: number;
  releases: number;
  postponements: number;
  version: number;
  seq: number;
  worker: string | null;
  /** Where they decide something: of queued and of waiting jobs. */
  rankHours: number | null;
  runAtHours: number | null;
  finished: boolean;
  pruned: boolean;
  progress: number | null;
  errorCode: string | null;
  errorAttempt: number | null;
  result: string | null;
  resultDigest: string | null;
  cancel: { by: string; reason: string | null; delivered: boolean; stopped: boolean; forced: boolean } | null;
  events: EventShot[];
  attempts: {
    number: number;
    run: number;
    worker: string;
    resumedFrom: string | null;
    outcome: string | null;
    error: string | null;
  }[];
  checkpoints: (ModelCheckpoint & { epoch: number })[];
}

export interface EventShot {
  seq: number;
  type: string;
  run: number;
  attempt: number | null;
  actor: string | null;
  state: string;
  outcome: string | null;
  error: string | null;
  key: string | null;
  worker: string | null;
  resumedFrom: string | null;
  reason: string | null;
}

const hoursTo = (column: string) => `round(extract(epoch from ${column} - clock_timestamp()) / 3600)::int`;

// One statement, so that looking costs little more than the step that is looked at.
const READ = `
select coalesce((
  select json_agg(json_build_object(
    'id', s.id, 'state', s.state, 'run', s.run, 'epoch', s.epoch, 'attempt', s.attempt, 'failures', s.failures,
    'maxAttempts', s.max_attempts, 'stalls', s.stalls, 'releases', s.releases, 'postponements', s.suspensions,
    'version', s.version, 'seq', s.last_seq, 'worker', s.worker_id,
    'rankHours', case when s.state = 'QUEUED' then ${hoursTo('s.rank')} end,
    'runAtHours', case when s.state in ('SCHEDULED', 'RETRYING') then ${hoursTo('s.run_at')} end,
    'finished', s.finished_at is not null, 'pruned', s.pruned_at is not null,
    'progress', s.progress->'current', 'errorCode', s.error->>'code', 'errorAttempt', s.error->'attempt',
    'result', (select p.data::text from waymark.payloads p where p.job_id = s.id and p.kind = 'result'),
    'resultDigest', s.result_digest,
    'cancel', case when s.cancel_requested_at is not null then json_build_object(
      'by', s.cancel_requested_by, 'reason', s.cancel_reason, 'delivered', s.cancel_delivered_at is not null,
      'stopped', s.cancel_stopped_at is not null, 'forced', s.cancel_forced) end,
    'events', coalesce((
      select json_agg(json_build_object(
        'seq', e.seq, 'type', e.type, 'run', e.run, 'attempt', e.attempt, 'actor', e.actor, 'state', e.state,
        'outcome', e.data->>'outcome', 'error', e.data->'error'->>'code', 'key', e.data->>'key',
        'worker', e.data->>'workerId', 'resumedFrom', e.data->>'resumedFrom',
        'reason', case when e.actor is not null or e.type in ('CancelRequested', 'JobCanceled') then e.data->>'reason' end
      ) order by e.seq) from waymark.events e where e.job_id = s.id), '[]'),
    'attempts', coalesce((
      select json_agg(json_build_object(
        'number', a.number, 'run', a.run, 'worker', a.worker_id, 'resumedFrom', a.resumed_from, 'outcome', a.outcome,
        'error', a.error->>'code'
      ) order by a.number) from waymark.attempts a where a.job_id = s.id), '[]'),
    'checkpoints', coalesce((
      select json_agg(json_build_object(
        'key', c.key, 'epoch', c.epoch, 'kind', c.kind, 'sequence', c.sequence, 'data', c.data, 'attempt', c.attempt,
        'processed', c.processed
      ) order by c.sequence) from waymark.checkpoints c where c.job_id = s.id), '[]')
  ) order by s.id) from waymark.job_states s), '[]') as jobs,
coalesce((
  select json_agg(json_build_object('name', k.name || '/' || k.key, 'jobId', k.job_id, 'scope', k.scope,
                                    'hoursLeft', ${hoursTo('k.expires_at')}) order by k.name, k.key)
  from waymark.idempotency_keys k), '[]') as keys,
coalesce((
  select json_agg(json_build_object('id', w.id, 'state', w.state, 'leaseHours', ${hoursTo('w.lease_until')}) order by w.id)
  from waymark.workers w where w.state <> $1), '[]') as workers,
coalesce((select json_agg(r.row order by r.at) from public.sim_rows r), '[]') as rows`;

export async function snapshotOf(db: Executor): Promise<Snapshot> {
  const [row] = await db.query<Snapshot>(READ, ['LOST']);
  if (!row) throw new Error('a select without from has one row');
  return { jobs: row.jobs, keys: row.keys, workers: row.workers, rows: row.rows };
}

/** A copy: the model goes on while it is compared. */
export function snapshotOfModel(world: World): Snapshot {
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  return {
    jobs: world.jobs.map((job) => shot(world, job)).sort(byId),
    keys: [...world.keys]
      .map(([name, { jobId, scope, expiresAt }]) => ({ name, jobId, scope, hoursLeft: hoursFrom(world, expiresAt) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    workers: world.workers
      .filter(({ state }) => state !== 'LOST')
      .map(({ id, state, leaseUntil }) => ({ id, state, leaseHours: hoursFrom(world, leaseUntil) }))
      .sort(byId),
    rows: [...world.rows],
  };
}

function shot(world: World, job: ModelJob): JobShot {
  const waits = job.state === 'SCHEDULED' || job.state === 'RETRYING';
  return {
    id: job.id,
    state: job.state,
    run: job.run,
    epoch: job.epoch,
    attempt: job.attempt,
    failures: job.failures,
    maxAttempts: job.task.maxAttempts,
    stalls: job.stalls,
    releases: job.releases,
    postponements: job.postponements,
    version: job.version,
    seq: job.seq,
    worker: job.worker,
    rankHours: job.state === 'QUEUED' ? hoursFrom(world, job.rank) : null,
    runAtHours: waits ? hoursFrom(world, job.runAt) : null,
    finished: isOver(job.state),
    pruned: job.prunedAt !== null,
    progress: job.progress,
    errorCode: job.error?.code ?? null,
    errorAttempt: job.error?.attempt ?? null,
    result: job.result,
    resultDigest: job.resultDigest,
    cancel: job.cancel && { ...job.cancel },
    events: job.events.map((e, i) => ({
      seq: job.seq - job.events.length + i + 1,
      type: e.type,
      run: e.run,
      attempt: e.attempt,
      actor: e.actor,
      state: e.state,
      outcome: e.outcome ?? null,
      error: e.error ?? null,
      key: e.key ?? null,
      worker: e.worker ?? null,
      resumedFrom: e.resumedFrom ?? null,
      reason: e.reason ?? null,
    })),
    attempts: job.attempts.map(({ said: _, ...attempt }) => attempt),
    checkpoints: job.checkpoints.map((c) => ({ ...c, epoch: job.epoch })),
  };
}
