import type { JobChange } from '../../src/core/change.ts';
import type { EventType, JobEvent } from '../../src/core/event.ts';
import { DEFAULT_TENANT } from '../../src/core/job.ts';
import type { ProgressState } from '../../src/core/progress.ts';
import { isTerminal, type JobState } from '../../src/core/state.ts';
import type { Executor } from '../../src/db/types.ts';
import { insertJob } from '../support/factory.ts';

const WRITE = `
with s as (
  update waymark.job_states
  set version = version + 1, last_seq = last_seq + $3::int, state = $2, run = $5::int, changed_at = clock_timestamp(),
      finished_at = case when $6::boolean then clock_timestamp() end,
      worker_id = case when $2 = 'RUNNING' then coalesce(worker_id, id) end, progress = coalesce($7::json, progress)
  where id = $1::uuid
  returning *
),
e as (
  insert into waymark.events (job_id, seq, at, type, run, attempt, actor, state, data)
  select s.id, s.last_seq - $3::int + n, s.changed_at, x.type, s.run, s.attempt, null, s.state, json_build_object('n', n)
  from s, unnest($4::text[]) with ordinality as x(type, n)
  returning *
),
c as (
  insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
  select s.changed_at, s.tenant, s.queue, s.task, $8, s.state, 1 from s where $8 <> s.state
)
select s.tenant, s.task, s.queue, s.run, s.state, s.version, s.last_seq as "lastSeq",
       e.seq, e.at, e.type, e.attempt, e.actor, e.data
from s left join e on true order by e.seq`;

type WrittenRow = Omit<JobChange, 'jobId' | 'from'> & { seq: number | null } & Pick<
    JobEvent,
    'at' | 'type' | 'attempt' | 'actor' | 'data'
  >;

/** Writes facts and gauges of one job as the engine does, in one statement each, and gives what it would publish. */
export class JobWriter {
  readonly id: string;
  readonly #db: Executor;
  #state: JobState;
  #run = 1;

  static async create(db: Executor, state: JobState = 'RUNNING'): Promise<JobWriter> {
    return new JobWriter(db, await insertJob(db, { state }), state);
  }

  private constructor(db: Executor, id: string, state: JobState) {
    this.#db = db;
    this.id = id;
    this.#state = state;
  }

  get state(): JobState {
    return this.#state;
  }

  /** Facts in one transaction. */
  facts(types: readonly EventType[], state: JobState = this.#state): Promise<JobChange> {
    return this.#write(types, state, null);
  }

  checkpoint(): Promise<JobChange> {
    return this.facts(['CheckpointSaved']);
  }

  progress(current: number): Promise<JobChange> {
    const progress: ProgressState = {
      ...{ stage: null, stageIndex: null, stageCount: null, nextStage: null, current, total: 100, unit: null },
      ...{ message: null, data: null, ratePerSecond: null, updatedAt: new Date().toISOString() },
    };
    return this.#write([], this.#state, progress);
  }

  complete(): Promise<JobChange> {
    return this.facts(['JobCompleted'], 'COMPLETED');
  }

  fail(): Promise<JobChange> {
    return this.facts(['AttemptEnded', 'JobFailed'], 'FAILED');
  }

  async retry(): Promise<JobChange> {
    this.#run++;
    return this.facts(['JobQueued', 'AttemptStarted'], 'RUNNING');
  }

  /** As retention does: of a keyed job the bare row stays. */
  async remove(keepRow = false): Promise<void> {
    await this.#db.query(`delete from waymark.events where job_id = $1::uuid`, [this.id]);
    if (keepRow) {
      await this.#db.query(
        `update waymark.job_states set pruned_at = clock_timestamp(), version = version + 1 where id = $1::uuid`,
        [this.id],
      );
      return;
    }
    await this.#db.query(`delete from waymark.jobs where id = $1::uuid`, [this.id]);
    await this.#db.query(`delete from waymark.job_states where id = $1::uuid`, [this.id]);
  }

  /** As a store does that was restored from an older copy. */
  async rewindTo(seq: number): Promise<void> {
    await this.#db.query(`delete from waymark.events where job_id = $1::uuid and seq > $2::int`, [this.id, seq]);
    await this.#db.query(`update waymark.job_states set version = $2::int, last_seq = $2::int where id = $1::uuid`, [
      this.id,
      seq,
    ]);
  }

  async #write(types: readonly EventType[], state: JobState, progress: ProgressState | null): Promise<JobChange> {
    const from = this.#state;
    this.#state = state;
    const rows = await this.#db.query<WrittenRow>(WRITE, [
      this.id,
      state,
      types.length,
      `{${types.join(',')}}`,
      this.#run,
      isTerminal(state),
      progress ? JSON.stringify(progress) : null,
      from,
    ]);
    const [first] = rows;
    if (!first) throw new Error('the job is gone');
    const events = rows.flatMap((row): JobEvent[] =>
      row.seq === null
        ? []
        : [
            {
              ...{ jobId: this.id, seq: row.seq, at: row.at, type: row.type, run: row.run, attempt: row.attempt },
              ...{ actor: row.actor, state: row.state, data: row.data },
            },
          ],
    );
    const { task, queue, run, version, lastSeq } = first;
    const change: JobChange = {
      jobId: this.id,
      tenant: DEFAULT_TENANT,
      task,
      queue,
      run,
      from,
      state,
      version,
      lastSeq,
      events,
    };
    return progress ? { ...change, progress } : change;
  }
}
