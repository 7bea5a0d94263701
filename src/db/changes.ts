import type { JobChange } from '../core/change.ts';
import { MAX_EVENT_ON_CHANNEL } from '../core/change.ts';
import type { EventData, EventType, JobEvent } from '../core/event.ts';
import type { JobState } from '../core/state.ts';

/** What every transition returns: one row per event it wrote, with the job as it is after the transition. */
export interface ChangeRow {
  id: string;
  tenant: string;
  task: string;
  queue: string;
  fromState: JobState | null;
  state: JobState;
  version: number;
  lastSeq: number;
  run: number;
  seq: number;
  at: string;
  type: EventType;
  attempt: number | null;
  actor: string | null;
  data: EventData | null;
  /** Somebody is to be told when the job ends. Only transitions that can end a job say so. */
  followed?: boolean;
}

/**
 * The tail of every transition: writes the events of `v` and answers with them. `v` has, per event, the job as moved
 * (id, tenant, task, queue, from_state, state, version, last_seq, run) and the event (seq, at, type, attempt, actor,
 * data). Events are taken from `v` and not from `insert … returning`: joining that back to the jobs is a nested loop
 * over two lists whose length the planner cannot know.
 */
export const WRITE_EVENTS = `
e as (
  insert into waymark.events (job_id, seq, at, type, run, attempt, actor, state, data)
  select v.id, v.seq, v.at, v.type, v.run, v.attempt, v.actor, v.state, v.data from v
)`;

/** The select list of ChangeRow over `v`. */
export const CHANGE_COLUMNS = `
v.id, v.tenant, v.task, v.queue, v.from_state as "fromState", v.state, v.version, v.last_seq as "lastSeq", v.run, v.seq,
v.at, v.type, v.attempt, v.actor, v.data`;

export const SELECT_CHANGES = `
select ${CHANGE_COLUMNS}
from v`;

/** The same, with whether the job has a follow-up when it ends. */
export const SELECT_FOLLOWED = `
select ${CHANGE_COLUMNS}, v.followed
from v`;

/** Leaves the follow-ups of the jobs of `m` that have ended; expects `t(now)` and the columns `state` and `followed`. */
export const LEAVE_FOLLOWUPS = `
w as (
  insert into waymark.followups (job_id, kind, created_at)
  select m.id, 'ENDED', t.now from m, t where m.followed and m.state in ('COMPLETED', 'FAILED', 'CANCELED')
)`;

/** The columns of `m` that `v` carries along. */
export const MOVED = 'm.id, m.tenant, m.task, m.queue, m.from_state, m.state, m.version, m.last_seq, m.run';

/** Appends how many jobs moved between states; expects `m` as above and `t(now)`. */
export const COUNT_DELTAS = `
c as (
  insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
  select t.now, m.tenant, m.queue, m.task, m.from_state, m.state, count(*)
  from m, t
  where m.from_state is distinct from m.state
  group by t.now, m.tenant, m.queue, m.task, m.from_state, m.state
)`;

/** Folds a transition's rows into one change per job, for the live channel. */
export function toChanges(rows: readonly ChangeRow[]): JobChange[] {
  const byJob = new Map<string, JobChange & { events: JobEvent[]; bytes: number }>();
  for (const row of rows) {
    let change = byJob.get(row.id);
    if (!change) {
      change = {
        jobId: row.id,
        tenant: row.tenant,
        task: row.task,
        queue: row.queue,
        run: row.run,
        from: row.fromState,
        state: row.state,
        version: row.version,
        lastSeq: row.lastSeq,
        events: [],
        bytes: 0,
      };
      byJob.set(row.id, change);
    }
    change.events.push({
      jobId: row.id,
      seq: row.seq,
      at: row.at,
      type: row.type,
      run: row.run,
      attempt: row.attempt,
      actor: row.actor,
      state: row.state,
      data: row.data ?? {},
    });
    // Only these carry what people or handlers wrote.
    change.bytes += row.data?.error || row.data?.decision ? JSON.stringify(row.data).length : 200;
  }
  return [...byJob.values()].map(({ bytes, events, ...change }) =>
    bytes > MAX_EVENT_ON_CHANNEL ? change : { ...change, events },
  );
}
