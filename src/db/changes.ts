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
}

/**
 * The tail of every transition. It expects the CTEs `m` (jobs moved: id, tenant, task, queue, from_state, state,
 * version, last_seq, run) and `e` (events written, as `returning *`).
 */
export const SELECT_CHANGES = `
select m.id, m.tenant, m.task, m.queue, m.from_state as "fromState", m.state, m.version, m.last_seq as "lastSeq",
       e.run, e.seq, e.at, e.type, e.attempt, e.actor, e.data
from m join e on e.job_id = m.id
order by m.id, e.seq`;

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
    change.bytes += row.data?.error ? JSON.stringify(row.data).length : 200;
  }
  return [...byJob.values()].map(({ bytes, events, ...change }) =>
    bytes > MAX_EVENT_ON_CHANNEL ? change : { ...change, events },
  );
}
