import type { ArtifactRow } from '../core/artifact.ts';
import type { EventType, JobEvent as JobEventRow } from '../core/event.ts';
import { summarize } from '../core/event.ts';
import { publicId } from '../core/ids.ts';
import type { CheckpointKind } from '../core/job.ts';
import { Artifact } from './artifact.ts';
import { builder } from './builder.ts';
import { Checkpoint } from './checkpoint.ts';
import { AttemptOutcomeEnum, CheckpointKindEnum, JobStateEnum, type WaitingKind, WaitingKindEnum } from './enums.ts';
import { errorOf, JobError } from './job-parts.ts';

export const JobEvent = builder.interfaceRef<JobEventRow>('JobEvent').implement({
  description:
    'A fact about a job, numbered without gaps. Scalars are as of then; `checkpoint` and `artifact` are as of now. More kinds may be added: pass over those you do not know.',
  resolveType: (event) => (event as JobEventRow).type,
  fields: (t) => ({
    seq: t.exposeInt('seq', { description: '1, 2, 3… per job. Hand it to `after` to go on behind it.' }),
    at: t.field({ type: 'DateTime', description: 'When, by the database’s clock.', resolve: (e) => e.at }),
    jobId: t.id({ description: 'The job.', resolve: (e) => publicId('Job', e.jobId) }),
    run: t.exposeInt('run', { description: 'The run in which it happened.' }),
    attempt: t.exposeInt('attempt', { nullable: true, description: 'The attempt that it is about.' }),
    actor: t.exposeString('actor', { nullable: true, description: 'Who did it, when somebody did: `user:ada`.' }),
    state: t.field({ type: JobStateEnum, description: 'The job’s state after it.', resolve: (e) => e.state }),
    summary: t.string({ description: 'One readable sentence.', resolve: (e) => summarize(e) }),
  }),
});

function eventRef(name: EventType) {
  return builder.objectRef<JobEventRow>(name);
}

eventRef('JobSubmitted').implement({
  description: 'Handed in.',
  interfaces: [JobEvent],
  fields: (t) => ({
    inputDigest: t.string({
      description: 'sha256 of the canonical JSON of its input.',
      resolve: (e) => e.data.inputDigest ?? '',
    }),
  }),
});

eventRef('JobQueued').implement({
  description: 'In line: a worker may take it.',
  interfaces: [JobEvent],
  fields: (t) => ({
    reason: t.string({ nullable: true, description: 'Why now.', resolve: (e) => e.data.reason }),
  }),
});

eventRef('AttemptStarted').implement({
  description: 'A worker took it.',
  interfaces: [JobEvent],
  fields: (t) => ({
    workerId: t.string({
      description: 'The worker (`wrk_…`).',
      resolve: (e) => (e.data.workerId ? publicId('Worker', e.data.workerId) : ''),
    }),
    resumedFrom: t.string({
      nullable: true,
      description: 'Key of the checkpoint behind which it goes on.',
      resolve: (e) => e.data.resumedFrom,
    }),
  }),
});

eventRef('CheckpointSaved').implement({
  description: 'A checkpoint was saved.',
  interfaces: [JobEvent],
  fields: (t) => ({
    key: t.string({ description: 'Its key.', resolve: (e) => e.data.key ?? '' }),
    kind: t.field({
      type: CheckpointKindEnum,
      description: 'What it holds.',
      resolve: (e) => (e.data.kind ?? 'VALUE') as CheckpointKind,
    }),
    processed: t.int({ nullable: true, description: 'Batches: items by then.', resolve: (e) => e.data.processed }),
    succeeded: t.int({ nullable: true, description: 'Batches: good ones by then.', resolve: (e) => e.data.succeeded }),
    failed: t.int({ nullable: true, description: 'Batches: bad ones by then.', resolve: (e) => e.data.failed }),
    checkpoint: t.field({
      type: Checkpoint,
      nullable: true,
      description:
        'The checkpoint of this key as it is now (its `sequence` grows when it is saved again); null when gone.',
      resolve: (e, _, context) =>
        e.data.key === undefined ? null : context.loaders.checkpoint.load({ jobId: e.jobId, key: e.data.key }),
    }),
  }),
});

eventRef('AttemptEnded').implement({
  description: 'An attempt ended without completing the job.',
  interfaces: [JobEvent],
  fields: (t) => ({
    outcome: t.field({
      type: AttemptOutcomeEnum,
      description: 'How.',
      resolve: (e) => e.data.outcome ?? 'FAILED',
    }),
    error: t.field({
      type: JobError,
      nullable: true,
      description: 'What went wrong, when something did.',
      resolve: (e) => errorOf(e.jobId, e.data.error),
    }),
  }),
});

eventRef('RetryScheduled').implement({
  description: 'Another attempt will follow.',
  interfaces: [JobEvent],
  fields: (t) => ({
    runAt: t.field({ type: 'DateTime', description: 'When it is due.', resolve: (e) => e.data.runAt ?? e.at }),
  }),
});

eventRef('JobSuspended').implement({
  description: 'The handler waits for people, time or other jobs, and holds no slot.',
  interfaces: [JobEvent],
  fields: (t) => ({
    waitingKind: t.field({
      type: WaitingKindEnum,
      description: 'For what.',
      resolve: (e) => (e.data.waitingKind ?? 'SLEEP') as WaitingKind,
    }),
    detail: t.string({ description: 'One readable sentence.', resolve: (e) => e.data.detail ?? '' }),
    until: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the waiting ends by itself.',
      resolve: (e) => e.data.until,
    }),
  }),
});

eventRef('CancelRequested').implement({
  description: 'Somebody asked to cancel it while it ran.',
  interfaces: [JobEvent],
  fields: (t) => ({
    reason: t.string({ nullable: true, description: 'Why, as given.', resolve: (e) => e.data.reason }),
  }),
});

eventRef('CancelDelivered').implement({
  description: 'The abort signal fired in the handler.',
  interfaces: [JobEvent],
});

eventRef('ArtifactStored').implement({
  description: 'The handler stored a deliverable.',
  interfaces: [JobEvent],
  fields: (t) => ({
    artifact: t.field({
      type: Artifact,
      description: 'The artifact of this name as it is now; as it was then, once it is gone.',
      resolve: async (e, _, context) => {
        const then = storedArtifact(e);
        return (await context.loaders.artifact.load({ jobId: e.jobId, name: then.name })) ?? then;
      },
    }),
  }),
});

function storedArtifact({ jobId, at, data }: JobEventRow): ArtifactRow {
  const { name = '', mediaType = 'application/octet-stream', bytes = 0, sha256 = '', createdAt = at } = data;
  return { jobId, name, mediaType, bytes, sha256, location: 'database', createdAt };
}

eventRef('JobCompleted').implement({
  description: 'Terminal: the handler returned.',
  interfaces: [JobEvent],
  fields: (t) => ({
    result: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What it returned; null when that was nothing, or belongs to an earlier run.',
      resolve: async (e, _, context) => {
        if ('result' in e.data) return e.data.result;
        // Not sent along: it is with the job, as long as that has not been run again.
        const job = await context.loaders.job.load(e.jobId);
        return job?.run === e.run ? context.loaders.result.load(e.jobId) : null;
      },
    }),
  }),
});

eventRef('JobFailed').implement({
  description: 'Terminal: it failed for good.',
  interfaces: [JobEvent],
  fields: (t) => ({
    error: t.field({
      type: JobError,
      nullable: true,
      description: 'Its last error.',
      resolve: (e) => errorOf(e.jobId, e.data.error),
    }),
  }),
});

eventRef('JobCanceled').implement({
  description: 'Terminal: it was canceled.',
  interfaces: [JobEvent],
  fields: (t) => ({
    reason: t.string({ nullable: true, description: 'Why, as given.', resolve: (e) => e.data.reason }),
  }),
});

/** A page of a job's facts. */
export interface EventPage {
  nodes: JobEventRow[];
  endSeq: number;
  lastSeq: number;
}

export const JobEventPage = builder.objectRef<EventPage>('JobEventPage').implement({
  description: 'Facts of a job in order.',
  fields: (t) => ({
    nodes: t.field({ type: [JobEvent], description: 'By `seq`, ascending.', resolve: (p) => p.nodes }),
    endSeq: t.exposeInt('endSeq', {
      description: '`seq` of the last one of this page; of an empty page the given `after`. Hand it to `after`.',
    }),
    lastSeq: t.exposeInt('lastSeq', { description: '`seq` of the newest fact of the job.' }),
    hasMore: t.boolean({
      description: 'Whether facts follow behind this page.',
      resolve: (p) => p.nodes.length > 0 && p.endSeq < p.lastSeq,
    }),
  }),
});
