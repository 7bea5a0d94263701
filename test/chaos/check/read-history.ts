import { readFile } from 'node:fs/promises';
import type { Sql, TransactionSql } from 'postgres';
import { publicId } from '../../../src/core/ids.ts';
import type { AttemptFact, CheckpointFact, EventFact, History, JobFact, LedgerLine } from './history.ts';

type Rows = Pick<History, 'jobs' | 'attempts' | 'events' | 'checkpoints' | 'written' | 'counters'>;

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

const JOBS = `
select s.id, s.task, j.idempotency_key as key, j.parent_id as "parentId", s.state, s.run, s.attempt, s.failures, s.max_attempts as "maxAttempts",
       s.last_seq as "lastSeq", s.version, p.job_id is not null as "hasResult", p.data as result,
       s.progress -> 'data' as "progressData", s.worker_id as "workerId",
       w.state <> 'LOST' and w.lease_until > clock_timestamp() as lives,
       ${ms('s.cancel_requested_at')} as "cancelRequestedAt", ${ms('s.cancel_stopped_at')} as "cancelStoppedAt",
       s.cancel_forced as "cancelForced"
from waymark.job_states s
join waymark.jobs j on j.id = s.id
left join waymark.payloads p on p.job_id = s.id and p.kind = 'result'
left join waymark.workers w on w.id = s.worker_id
order by s.id`;
const ATTEMPTS = `
select a.job_id as "jobId", a.number, a.run, a.outcome, a.error ->> 'code' as "errorCode", w.pid,
       ${ms('a.started_at')} as "startedAt", ${ms('a.finished_at')} as "finishedAt"
from waymark.attempts a left join waymark.workers w on w.id = a.worker_id
order by a.job_id, a.number`;
const EVENTS = `
select job_id as "jobId", seq, ${ms('at')} as at, type, run, attempt, state from waymark.events order by job_id, seq`;
const CHECKPOINTS = `
select job_id as "jobId", key, kind, attempt, sequence, processed::int, data from waymark.checkpoints order by job_id, sequence`;
const WRITTEN = `
select job as "jobId", count(*)::int as rows, count(distinct item)::int as items from chaos_written group by job`;
const COUNTERS = 'select job as "jobId", value from chaos_counters';

/** Everything that the store says about the round, read from the tables themselves, as of one moment. */
export function readStore(sql: Sql): Promise<Rows> {
  return sql.begin('isolation level repeatable read read only', readTables) as Promise<Rows>;
}

async function readTables(sql: TransactionSql): Promise<Rows> {
  const jobs = await sql.unsafe(JOBS);
  const shown = <T>(rows: readonly object[]): T[] =>
    rows.map((row) => ({ ...row, jobId: publicId('Job', (row as { jobId: string }).jobId) }) as T);
  return {
    jobs: jobs.map(({ workerId, lives, ...job }) => ({
      ...(job as unknown as JobFact),
      id: publicId('Job', job.id),
      parentId: job.parentId === null ? null : publicId('Job', job.parentId),
      worker: workerId === null ? null : { id: publicId('Worker', workerId), lives: lives === true },
    })),
    attempts: shown<AttemptFact>(await sql.unsafe(ATTEMPTS)),
    events: shown<EventFact>(await sql.unsafe(EVENTS)),
    checkpoints: shown<CheckpointFact>(await sql.unsafe(CHECKPOINTS)),
    written: [...(await sql.unsafe<History['written'][number][]>(WRITTEN))],
    counters: [...(await sql.unsafe<History['counters'][number][]>(COUNTERS))],
  };
}

/** What handlers wrote down; a process that was killed in mid-line has left no newline behind it. */
export async function readLedger(file: string): Promise<LedgerLine[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '))
    .map(([jobId = '', attempt, step, pid]) => ({
      jobId,
      attempt: Number(attempt),
      step: Number(step),
      pid: Number(pid),
    }));
}
