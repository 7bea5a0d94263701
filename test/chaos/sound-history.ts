import type { AttemptFact, CheckpointFact, EventFact, History, JobFact } from './check/history.ts';
import type { Accepted } from './load/job-carrier.ts';
import type { JobPlan } from './load/job-plan.ts';
import { FAULT_KINDS } from './schedule.ts';

/** What a test may write into: the same without `readonly`. */
export type Writable<T> = T extends object ? { -readonly [K in keyof T]: Writable<T[K]> } : T;

const PID = 100;

/**
 * A small history in which every rule holds: `steps` that lost a worker behind its first step, `batches`, `counter`, a job
 * that failed and was retried, one that was canceled, a `family` with two children, and `echo` that waited for it; each with
 * subscribers of every sort.
 */
export function soundHistory(): Writable<History> {
  const jobs = [
    job('steps', { attempt: 2, failures: 1, lastSeq: 8, progressData: { by: 2 } }),
    job('batches', { lastSeq: 4 }),
    job('counter', { lastSeq: 5 }),
    job('secondRun', { run: 2, attempt: 2, lastSeq: 8 }),
    ...['child 0', 'child 1'].map((id) => job(id, { task: 'echo', key: null, parentId: 'family', lastSeq: 3 })),
    job('family', { attempt: 2, lastSeq: 7, result: { by: 2, texts: ['child 0', 'child 1'] } }),
    job('echo', { lastSeq: 4 }),
    job('nap', { state: 'CANCELED', lastSeq: 6, hasResult: false, result: null }),
  ];
  const events = [
    ...log('steps', [
      ...['JobSubmitted QUEUED', 'AttemptStarted 1 RUNNING', 'CheckpointSaved 1 RUNNING'],
      ...['AttemptEnded 1 QUEUED', 'JobQueued 1 QUEUED', 'AttemptStarted 2 RUNNING'],
      ...['CheckpointSaved 2 RUNNING', 'JobCompleted 2 COMPLETED'],
    ]),
    ...log('batches', [...BEGIN, 'CheckpointSaved 1 RUNNING', 'JobCompleted 1 COMPLETED']),
    ...log('counter', [...BEGIN, 'CheckpointSaved 1 RUNNING', 'CheckpointSaved 1 RUNNING', 'JobCompleted 1 COMPLETED']),
    ...log('secondRun', [
      ...[...BEGIN, 'CheckpointSaved 1 RUNNING', 'AttemptEnded 1 FAILED', 'JobFailed 1 FAILED'],
      ...['JobQueued QUEUED', 'AttemptStarted 2 RUNNING', 'JobCompleted 2 COMPLETED'],
    ]),
    ...['child 0', 'child 1'].flatMap((id) => log(id, [...BEGIN, 'JobCompleted 1 COMPLETED'])),
    ...log('family', [
      ...[...BEGIN, 'CheckpointSaved 1 RUNNING', 'AttemptEnded 1 DEFERRED', 'JobQueued QUEUED'],
      ...['AttemptStarted 2 RUNNING', 'JobCompleted 2 COMPLETED'],
    ]),
    // A later one: time goes on behind the end of the family.
    ...log('echo', [
      'JobSubmitted DEFERRED',
      'JobQueued QUEUED',
      'AttemptStarted 1 RUNNING',
      'JobCompleted 1 COMPLETED',
    ]).map((event) => ({ ...event, at: event.at + 10 })),
    ...log('nap', [
      ...[...BEGIN, 'CancelRequested 1 RUNNING', 'CancelDelivered 1 RUNNING'],
      ...['AttemptEnded 1 CANCELED', 'JobCanceled 1 CANCELED'],
    ]),
  ];
  for (const event of events.filter((e) => e.jobId === 'secondRun' && e.seq > 5)) event.run = 2;
  const history: History = {
    jobs,
    events,
    accepted: [
      accepted('steps', { input: { n: 2, ms: 1 } }),
      accepted('batches', { input: { items: 3, size: 5 } }),
      accepted('counter', { input: { n: 2 } }),
      accepted('secondRun', { retry: true }),
      accepted('family', { input: { n: 2 } }),
      { ...accepted('echo', { behind: true }), upstream: 'family' },
      accepted('nap', { ends: ['COMPLETED', 'CANCELED'] }),
    ],
    unresolved: [],
    attempts: [
      attempt('steps', 1, { outcome: 'STALLED', errorCode: 'STALLED' }),
      attempt('steps', 2),
      attempt('batches', 1),
      attempt('counter', 1),
      attempt('secondRun', 1, { outcome: 'FAILED', errorCode: 'DOOMED' }),
      attempt('secondRun', 2, { run: 2 }),
      ...['child 0', 'child 1', 'echo'].map((id) => attempt(id, 1)),
      attempt('family', 1, { outcome: 'SUSPENDED' }),
      attempt('family', 2),
      attempt('nap', 1, { outcome: 'CANCELED' }),
    ],
    checkpoints: [
      checkpoint('steps', 'step 0', 1),
      checkpoint('steps', 'step 1', 2),
      checkpoint('batches', 'items', 1, { kind: 'CURSOR', data: 3, processed: 3 }),
      checkpoint('counter', 'add 0', 1),
      checkpoint('counter', 'add 1', 1),
      checkpoint('secondRun', 'first', 1),
      checkpoint('family', 'children', 1, { kind: 'CHILDREN', data: { jobs: [] } }),
    ],
    ledger: [
      { jobId: 'steps', attempt: 1, step: 0, pid: PID },
      { jobId: 'steps', attempt: 1, step: 1, pid: PID },
      { jobId: 'steps', attempt: 2, step: 1, pid: PID },
    ],
    written: [{ jobId: 'batches', rows: 3, items: 3 }],
    counters: [{ jobId: 'counter', value: 2 }],
    counted: [0, 1].flatMap((api) => [
      { api, state: 'COMPLETED' as const, count: 8 },
      { api, state: 'CANCELED' as const, count: 1 },
    ]),
    followings: [
      ...(['events', 'raw events'] as const).map((by) => ({
        ...{ jobId: 'steps', api: 0, by, after: 1, ended: 'end', views: [] },
        facts: events.filter((e) => e.jobId === 'steps' && e.seq > 1),
      })),
      {
        ...{ jobId: 'nap', api: 1, by: 'progress' as const, after: 0, ended: 'end', facts: [] },
        views: [4, 6].map((version) => ({ version, state: version === 6 ? 'CANCELED' : 'RUNNING', run: 1 })),
      },
    ],
    errors: [
      { at: 0, api: 0, doing: 'submit', code: 'UNAVAILABLE', message: 'the store cannot be reached now; try again' },
    ],
    badEnds: [],
    resources: [{ what: 'channels of Redis', before: 5, after: 5, most: 5 }],
    recoveries: [{ jobId: 'steps', attempt: 1, ms: 3_400, calm: true }],
    thefts: [],
    faults: FAULT_KINDS.map((kind) => ({
      planned: { atMs: 0, kind, target: 'it', holdMs: 0, calm: false },
      ...{ from: 0, to: 1, observed: true, detail: 'felt' },
    })),
  };
  return structuredClone(history) as Writable<History>;
}

const BEGIN = ['JobSubmitted QUEUED', 'AttemptStarted 1 RUNNING'];

function job(task: string, over: Partial<JobFact>): JobFact {
  return {
    ...{
      id: task,
      task,
      key: `key of ${task}`,
      parentId: null,
      state: 'COMPLETED',
      run: 1,
      attempt: 1,
      failures: 0,
      maxAttempts: 50,
    },
    ...{ lastSeq: 0, version: over.lastSeq ?? 0, worker: null, hasResult: true, result: { by: over.attempt ?? 1 } },
    ...{ progressData: null, cancelRequestedAt: null, cancelStoppedAt: null, cancelForced: false },
    ...over,
  };
}

function attempt(jobId: string, number: number, over: Partial<AttemptFact> = {}): AttemptFact {
  const times = { startedAt: number * 10, finishedAt: number * 10 + 5 };
  return { jobId, number, run: 1, outcome: 'SUCCEEDED', errorCode: null, pid: PID, ...times, ...over };
}

/** Each line: type, attempt (if it is about one), state. */
function log(jobId: string, lines: readonly string[]): EventFact[] {
  return lines.map((line, i) => {
    const [type, ...rest] = line.split(' ');
    const [number, state] = rest.length === 2 ? [Number(rest[0]), rest[1]] : [null, rest[0]];
    return { jobId, seq: i + 1, at: i, type, run: 1, attempt: number, state } as EventFact;
  });
}

function checkpoint(jobId: string, key: string, by: number, over: Partial<CheckpointFact> = {}): CheckpointFact {
  return { jobId, key, kind: 'STEP', attempt: by, sequence: 3, processed: null, data: { by }, ...over };
}

function accepted(task: string, over: Partial<JobPlan>): Accepted {
  const plan: JobPlan = {
    ...{ n: 0, task, input: {}, key: `key of ${task}`, api: 0, twice: false, cancelAfterMs: null, retry: false },
    ...{ follow: 'no', after: 0, behind: false, ends: ['COMPLETED'] },
    ...over,
  };
  return { plan, id: task, ids: [task], upstream: null, tookMs: 5 };
}
