import type { Command } from 'commander';
import { type Job, RequestError } from '../../client/index.ts';
import { reviewText } from '../approval-text.ts';
import { colorsFor, type Io, print, printJson, table } from '../io.ts';
import { type JobDetails, jobDetails, type OtherJob } from '../job-details.ts';
import { detailTables } from '../job-tables.ts';
import { progressLine } from '../progress-line.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

/** `waymark show JOB`: one job with what belongs to it. */
export function addShow(program: Command, io: Io): void {
  withClientFlags(program.command('show'))
    .summary('shows a job')
    .description(
      'Shows a job with its newest attempts and checkpoints, what it asks people, its children, what it waited for and ' +
        'what it delivered.',
    )
    .argument('<job>', 'id of the job')
    .action(async (id: string, flags: ClientFlags) => {
      const { job, details } = await withClient(io, flags, async (client) => {
        const job = await client.job(id).get();
        const details = job && (await jobDetails(client, id));
        if (!job || !details) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
        return { job, details };
      });
      if (flags.json) return printJson(io, { ...job, ...details });
      // Why it waits has a line of its own below.
      print(io, progressLine({ ...job, waitingOn: null }, colorsFor(io.stdout, io.env)));
      print(io, table(['', ''], facts(job, details)).trimStart());
      for (const text of detailTables(details)) print(io, `\n${text}`);
      const open = job.waitingOn?.approvals ?? [];
      for (const approval of open) print(io, `\n${reviewText(approval, open)}`);
    });
}

function facts(job: Job, { parent, graph }: JobDetails): string[][] {
  const rows: [string, unknown][] = [
    ['id', job.id],
    ['task', job.task],
    ['title', job.title === job.task ? null : job.title],
    ['queue', job.queue],
    ['tags', job.tags.length > 0 ? job.tags.join(', ') : null],
    ['parent', parent && named(parent)],
    ['graph', graph && `${graph.id} ${graph.title}`],
    ['submitted', `${job.createdAt} by ${job.submittedBy}`],
    ['started', job.startedAt],
    ['finished', job.finishedAt],
    ['waiting on', job.waitingOn?.detail],
    ['cancellation', job.cancellation && cancellationOf(job.cancellation)],
    ['error', job.error && `${job.error.code}: ${job.error.message}`],
    ['input', job.input == null ? null : JSON.stringify(job.input)],
    ['result', job.state === 'COMPLETED' ? JSON.stringify(job.result) : null],
  ];
  return rows.filter(([, value]) => value != null).map(([name, value]) => [name, String(value)]);
}

/** A job that was canceled because of another has no one who asked, but says which. */
function cancellationOf({ requestedAt, requestedBy, reason }: NonNullable<Job['cancellation']>): string {
  if (requestedBy === null && reason !== null) return `at ${requestedAt}: ${reason}`;
  return `requested ${requestedAt} by ${requestedBy}${reason === null ? '' : `: ${reason}`}`;
}

const named = ({ id, title }: OtherJob): string => `${id} ${title}`;
