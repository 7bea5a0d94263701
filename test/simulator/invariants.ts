import assert from 'node:assert/strict';
import { TERMINAL_EVENTS } from '../../src/core/event.ts';
import { BUDGET_OUTCOMES } from '../../src/core/state.ts';
import type { Executor } from '../../src/db/types.ts';
import { isOver } from './model.ts';
import type { JobShot, Snapshot } from './snapshot.ts';

/** What must hold of every store, checked on the rows alone: the model has no say here. */
export async function assertInvariants({ jobs }: Snapshot, db: Executor): Promise<void> {
  for (const job of jobs.filter((j) => !j.pruned)) {
    const of = (rule: string) => `${rule}: ${JSON.stringify(job, null, 1)}`;
    carriesWhatItsStateSays(job, of('an error, who canceled, a worker, an end: each state with its own'));
    oneEndPerRun(job, of('I2, one terminal event per run and nothing behind it'));
    countedAttempts(job, of('I3, attempts 1..n, one open at most, failures within the budget'));
    gaplessEvents(job, of('I6, events without gaps, the terminal one last'));
    fromTheWinner(job, of('I8, result and checkpoints come from attempts that owned the job'));
  }
  const [found] = await db.query<{ orphans: number; miscounted: number }>(AROUND, ['COMPLETED']);
  assert.deepEqual(found, { orphans: 0, miscounted: 0 }, 'rows without their job, and states whose counts are wrong');
}

const isTerminalEvent = (type: string) => (TERMINAL_EVENTS as readonly string[]).includes(type);

function carriesWhatItsStateSays({ state, errorCode, cancel, worker, finished }: JobShot, rule: string): void {
  if (state === 'FAILED' || state === 'RETRYING') assert.notEqual(errorCode, null, rule);
  if (state === 'CANCELED') assert.equal(cancel?.stopped, true, rule);
  assert.equal(worker !== null, state === 'RUNNING', rule);
  assert.equal(finished, isOver(state as never), rule);
}

function oneEndPerRun({ events, run, state }: JobShot, rule: string): void {
  for (let r = 1; r <= run; r++) {
    const types = events.filter((e) => e.run === r).map((e) => e.type);
    const ends = types.filter(isTerminalEvent).length;
    assert.equal(ends, r < run || isOver(state as never) ? 1 : 0, rule);
    if (ends > 0) assert.ok(isTerminalEvent(types.at(-1) ?? ''), rule);
  }
}

function countedAttempts({ attempts, attempt, state, failures, maxAttempts, run }: JobShot, rule: string): void {
  assert.deepEqual(
    attempts.map((a) => a.number),
    Array.from({ length: attempt }, (_, i) => i + 1),
    rule,
  );
  const open = attempts.filter((a) => a.outcome === null).map((a) => a.number);
  assert.deepEqual(open, state === 'RUNNING' ? [attempt] : [], rule);
  const spent = attempts.filter((a) => a.run === run && (BUDGET_OUTCOMES as readonly unknown[]).includes(a.outcome));
  assert.equal(failures, spent.length, rule);
  assert.ok(failures <= maxAttempts, rule);
}

function gaplessEvents({ events, seq, state }: JobShot, rule: string): void {
  assert.deepEqual(
    events.map((e) => e.seq),
    Array.from({ length: seq }, (_, i) => i + 1),
    rule,
  );
  const last = events.at(-1);
  assert.equal(last?.state, state, rule);
  assert.equal(isTerminalEvent(last?.type ?? ''), isOver(state as never), rule);
}

function fromTheWinner({ events, attempts, checkpoints, result, state }: JobShot, rule: string): void {
  if (state === 'COMPLETED') {
    const winner = events.at(-1)?.attempt;
    assert.equal(attempts.find((a) => a.number === winner)?.outcome, 'SUCCEEDED', rule);
    assert.equal(JSON.parse(result ?? 'null').by, winner, rule);
  } else assert.equal(result, null, rule);
  for (const { sequence, key, attempt, data } of checkpoints) {
    const saved = events.find((e) => e.seq === sequence);
    assert.deepEqual([saved?.type, saved?.key, saved?.attempt], ['CheckpointSaved', key, attempt], rule);
    assert.equal((data as { by: number }).by, attempt, rule);
    const since = events.filter((e) => e.seq <= sequence && e.type === 'AttemptStarted');
    assert.equal(since.at(-1)?.attempt, attempt, rule);
  }
}

// Counted is what was folded, and what is not folded yet; a bare row is counted no longer. The parameter only makes the
// statement be prepared.
const AROUND = `
with live as (select s.id from waymark.job_states s where s.pruned_at is null),
belongings as (
  select job_id from waymark.payloads union all select job_id from waymark.attempts
  union all select job_id from waymark.checkpoints union all select job_id from waymark.events
),
moves as (
  select task, to_state as state, n from waymark.count_deltas where to_state is not null
  union all select task, from_state, -n from waymark.count_deltas where from_state is not null
  union all select task, state, n from waymark.counts
  union all select task, state, -1 from waymark.job_states where pruned_at is null
)
select (select count(*) from belongings b where not exists (select 1 from live l where l.id = b.job_id))::int
         + (select count(*) from waymark.jobs j full join waymark.job_states s on s.id = j.id
            where j.id is null or s.id is null)::int
         + (select count(*) from waymark.idempotency_keys k
            where not exists (select 1 from waymark.job_states s where s.id = k.job_id))::int as orphans,
       (select count(*) from (select 1 from moves group by task, state having sum(n) <> 0) x)::int as miscounted
where $1 <> ''`;
