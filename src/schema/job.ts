import type { JobRow } from '../core/job.ts';
import { allows, isTerminal } from '../core/state.ts';
import { Artifact } from './artifact.ts';
import { AttemptConnection } from './attempt.ts';
import { CheckpointConnection } from './checkpoint.ts';
import { pageArgs } from './connection.ts';
import { EVENTS_SIZE } from './cost.ts';
import { JobActionEnum, JobHealthEnum, JobStateEnum } from './enums.ts';
import { JobEventPage } from './event.ts';
import { attemptsPage, checkpointsPage, eventsPage, logsPage } from './job-belongings.ts';
import { Cancellation, errorOf, JobError, Progress } from './job-parts.ts';
import { LogLineConnection } from './log-line.ts';
import { Node } from './node.ts';
import { Job, Schedule, Worker } from './refs.ts';
import { canDecideAny } from './reviews.ts';
import { WaitingOn, waitingOn } from './waiting.ts';

/** What the viewer may do with a job now, by the state machine. */
export function actionsOf(job: JobRow): ('CANCEL' | 'RETRY' | 'RUN_NOW')[] {
  if (job.prunedAt !== null) return [];
  return [
    ...(allows('cancel', job.state) && job.cancelRequestedAt === null ? (['CANCEL'] as const) : []),
    ...(allows('retry', job.state) ? (['RETRY'] as const) : []),
    ...(allows('runNow', job.state) ? (['RUN_NOW'] as const) : []),
  ];
}

/** When what belongs to a finished job goes. */
function pruneAt(job: JobRow, retainMs: { completed: number; failed: number; canceled: number }): string | null {
  if (job.finishedAt === null || job.prunedAt !== null) return null;
  const key = job.state === 'COMPLETED' ? 'completed' : job.state === 'FAILED' ? 'failed' : 'canceled';
  const finished = Date.parse(`${job.finishedAt.replace(' ', 'T').replace(/\+00$/, '')}Z`);
  return new Date(Math.min(finished + retainMs[key], Date.parse('9999-12-31T23:59:59.999Z'))).toISOString();
}

Job.implement({
  description: 'One piece of work of a task.',
  interfaces: [Node],
  fields: (t) => ({
    task: t.exposeString('task', { description: 'Name of its task.' }),
    title: t.string({
      description: 'For people: as given at submit, else the task’s name.',
      resolve: (job) => job.title ?? job.task,
    }),
    queue: t.exposeString('queue', { description: 'The line that it stands in.' }),
    priority: t.exposeInt('priority', { description: '−100…100; higher goes first.' }),
    tags: t.exposeStringList('tags', { description: 'As given at submit.' }),
    state: t.field({ type: JobStateEnum, description: 'Where it is in its life.', resolve: (job) => job.state }),
    isTerminal: t.boolean({
      description: 'Whether its run has ended: only a retry goes on from here.',
      resolve: (job) => isTerminal(job.state),
    }),
    run: t.exposeInt('run', { description: '1, 2, …: `retryJob` on a finished job opens the next.' }),
    version: t.exposeInt('version', {
      description: 'Grows with every change, fact or progress: drop what is older than what you have.',
    }),
    lastSeq: t.exposeInt('lastSeq', {
      description: '`seq` of its newest event: hand it to `jobEvents(after:)` to miss nothing in between.',
    }),
    input: t.field({
      type: 'JSON',
      nullable: true,
      description: 'As given at submit; null when none was given, and once it is pruned.',
      resolve: (job, _, context) => context.loaders.input.load(job.id),
    }),
    submittedBy: t.exposeString('submittedBy', { description: 'Actor who handed it in: `user:ada`.' }),
    schedule: t.field({
      type: Schedule,
      nullable: true,
      description: 'What handed it in, when a schedule did; null once that is removed.',
      resolve: (job, _, { loaders }) => (job.scheduleId === null ? null : loaders.schedule.load(job.scheduleId)),
    }),
    concurrencyKey: t.exposeString('concurrencyKey', {
      nullable: true,
      description: 'Of jobs with the same key one at a time is run.',
    }),
    timeout: t.field({
      type: 'Duration',
      nullable: true,
      description: 'Longest time of one attempt; null: none.',
      resolve: (job) => job.timeoutMs,
    }),
    resultDigest: t.exposeString('resultDigest', {
      nullable: true,
      description: 'sha256 of the canonical JSON of its result, once COMPLETED.',
    }),
    prunedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When retention removed all that belonged to it; the bare job stays until its key expires.',
      resolve: (job) => job.prunedAt,
    }),
    pruneAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When retention is to do that; null before it has finished and once it is done.',
      resolve: (job, _, context) => pruneAt(job, context.retainMs),
    }),
    inputDigest: t.exposeString('inputDigest', { description: 'sha256 of the canonical JSON of its input.' }),
    idempotencyKey: t.exposeString('idempotencyKey', { nullable: true, description: 'As given at submit.' }),
    result: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What its handler returned, once COMPLETED; null also when that was nothing.',
      resolve: (job, _, context) => (job.state === 'COMPLETED' ? context.loaders.result.load(job.id) : null),
    }),
    error: t.field({
      type: JobError,
      nullable: true,
      description: 'The last one, in RETRYING and FAILED.',
      resolve: (job) => (job.state === 'RETRYING' || job.state === 'FAILED' ? errorOf(job.id, job.error) : null),
    }),
    progress: t.field({
      type: Progress,
      nullable: true,
      description: 'The latest report of its handler; null before the first.',
      resolve: (job) => job.progress,
    }),
    attemptNumber: t.int({
      description: 'Number of its newest attempt over all runs, 0 before the first.',
      resolve: (job) => job.attempt,
    }),
    failures: t.exposeInt('failures', { description: 'Attempts of this run that used up budget.' }),
    maxAttempts: t.exposeInt('maxAttempts', { description: 'The budget of a run.' }),
    runAt: t.field({ type: 'DateTime', description: 'When it is due.', resolve: (job) => job.runAt }),
    createdAt: t.field({ type: 'DateTime', description: 'When it was handed in.', resolve: (job) => job.createdAt }),
    queuedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it last came into line.',
      resolve: (job) => job.queuedAt,
    }),
    startedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'First claim of this run.',
      resolve: (job) => job.startedAt,
    }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'Last fact; progress has a time of its own.',
      resolve: (job) => job.changedAt,
    }),
    finishedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When this run ended; null unless the state is terminal.',
      resolve: (job) => job.finishedAt,
    }),
    worker: t.field({
      type: Worker,
      nullable: true,
      description: 'Who runs it, while RUNNING.',
      resolve: (job, _, context) => (job.workerId === null ? null : context.loaders.worker.load(job.workerId)),
    }),
    leaseExpiresAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Until when its worker owns it if no heartbeat follows; while RUNNING.',
      resolve: async (job, _, context) =>
        job.workerId === null ? null : ((await context.loaders.worker.load(job.workerId))?.leaseUntil ?? null),
    }),
    health: t.field({
      type: JobHealthEnum,
      description: 'How it is doing while it runs.',
      resolve: async (job, _, context) =>
        job.state === 'RUNNING'
          ? ((await context.loaders.health.load(job.id)) as typeof JobHealthEnum.$inferType)
          : 'OK',
    }),
    cancellation: t.field({
      type: Cancellation,
      nullable: true,
      description: 'The ladder of a cancel, once requested in this run, or what canceled it: a job that it depends on.',
      resolve: (job) => (job.cancelRequestedAt === null && job.state !== 'CANCELED' ? null : job),
    }),
    waitingOn: t.field({
      type: WaitingOn,
      nullable: true,
      description: 'Why it is not running; null while RUNNING or terminal.',
      resolve: (job, _, context) => waitingOn(job, context),
    }),
    attempts: t.field({
      type: AttemptConnection,
      description: 'Its attempts, the first one first.',
      args: pageArgs(),
      resolve: (job, args, context) => attemptsPage(job, args, context),
    }),
    checkpoints: t.field({
      type: CheckpointConnection,
      description: 'Its checkpoints that still count, in the order in which they were saved last.',
      args: pageArgs(),
      resolve: (job, args, context) => checkpointsPage(job, args, context),
    }),
    events: t.field({
      type: JobEventPage,
      description: 'Its facts in order.',
      args: {
        after: t.arg.int({ defaultValue: 0, description: 'Only those with a larger `seq`; from 0.' }),
        first: t.arg.int({
          defaultValue: EVENTS_SIZE.default,
          description: `At most so many, up to ${EVENTS_SIZE.max}.`,
        }),
        last: t.arg.int({
          description: `In place of \`first\`: the newest, up to ${EVENTS_SIZE.max}; in order all the same.`,
        }),
      },
      resolve: (job, args, context) => eventsPage(job, args, context),
    }),
    logs: t.field({
      type: LogLineConnection,
      description: 'What its handler logged, in order.',
      args: pageArgs(),
      resolve: (job, args, context) => logsPage(job, args, context),
    }),
    artifacts: t.field({
      type: [Artifact],
      description: 'What its handler delivered, by name.',
      resolve: (job, _, { loaders }) => loaders.artifacts.load(job.id),
    }),
    actions: t.field({
      type: [JobActionEnum],
      description: 'What the viewer may do with it now.',
      resolve: async (job, _, context) => [
        ...actionsOf(job),
        ...((await canDecideAny(job, context)) ? (['APPROVE', 'REJECT'] as const) : []),
      ],
    }),
  }),
});
