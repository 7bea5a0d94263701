import type { Command } from 'commander';
import { type Job, RequestError } from '../../client/index.ts';
import { colorsFor, type Io, print, printJson, table } from '../io.ts';
import { progressLine } from '../progress-line.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

interface Attempt {
  number: number;
  run: number;
  outcome: string | null;
  startedAt: string;
  finishedAt: string | null;
  resumedFrom: string | null;
  error: { code: string; message: string } | null;
}

interface Checkpoint {
  key: string;
  kind: string;
  processed: number | null;
  failed: number | null;
  updatedAt: string;
}

const HISTORY = `
query History($id: ID!) {
  job(id: $id) {
    attempts(last: 20) { nodes { number run outcome startedAt finishedAt resumedFrom error { code message } } }
    checkpoints(last: 20) { nodes { key kind processed succeeded failed updatedAt errorSamples { item message attempt at } } }
  }
}`;

/** `waymark show JOB`: one job with its newest attempts and checkpoints. */
export function addShow(program: Command, io: Io): void {
  withClientFlags(program.command('show'))
    .summary('shows a job')
    .description('Shows a job with its newest attempts and checkpoints.')
    .argument('<job>', 'id of the job')
    .action(async (id: string, flags: ClientFlags) => {
      const { job, attempts, checkpoints } = await withClient(io, flags, async (client) => {
        const job = await client.job(id).get();
        const history = await client.request<{ job: Record<'attempts' | 'checkpoints', { nodes: unknown[] }> | null }>(
          HISTORY,
          { id },
        );
        if (!job || !history.job) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
        return {
          job,
          attempts: history.job.attempts.nodes as Attempt[],
          checkpoints: history.job.checkpoints.nodes as Checkpoint[],
        };
      });
      if (flags.json) return printJson(io, { ...job, attempts, checkpoints });
      print(io, progressLine(job, colorsFor(io.stdout, io.env)));
      print(io, table(['', ''], facts(job)).trimStart());
      if (attempts.length > 0) print(io, `\n${attemptTable(attempts)}`);
      if (checkpoints.length > 0) print(io, `\n${checkpointTable(checkpoints)}`);
    });
}

function facts(job: Job): string[][] {
  const rows: [string, unknown][] = [
    ['id', job.id],
    ['task', job.task],
    ['title', job.title === job.task ? null : job.title],
    ['queue', job.queue],
    ['tags', job.tags.length > 0 ? job.tags.join(', ') : null],
    ['submitted', `${job.createdAt} by ${job.submittedBy}`],
    ['started', job.startedAt],
    ['finished', job.finishedAt],
    ['waiting on', job.waitingOn?.detail],
    [
      'cancellation',
      job.cancellation && `requested ${job.cancellation.requestedAt} by ${job.cancellation.requestedBy}`,
    ],
    ['error', job.error && `${job.error.code}: ${job.error.message}`],
    ['input', job.input == null ? null : JSON.stringify(job.input)],
    ['result', job.state === 'COMPLETED' ? JSON.stringify(job.result) : null],
  ];
  return rows.filter(([, value]) => value != null).map(([name, value]) => [name, String(value)]);
}

function attemptTable(attempts: readonly Attempt[]): string {
  const rows = attempts.map((a) => [
    String(a.number),
    a.outcome ?? 'running',
    a.startedAt,
    a.finishedAt ?? '',
    a.resumedFrom ?? '',
    a.error ? `${a.error.code}: ${a.error.message}` : '',
  ]);
  return table(['ATTEMPT', 'OUTCOME', 'STARTED', 'FINISHED', 'BEHIND', 'ERROR'], rows);
}

function checkpointTable(checkpoints: readonly Checkpoint[]): string {
  const rows = checkpoints.map((c) => [c.key, c.kind, `${c.processed ?? ''}`, `${c.failed ?? ''}`, c.updatedAt]);
  return table(['CHECKPOINT', 'KIND', 'PROCESSED', 'FAILED', 'SAVED'], rows);
}
