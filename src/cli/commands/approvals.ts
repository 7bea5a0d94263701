import type { Command } from 'commander';
import type { Approval, DecideOptions } from '../../client/index.ts';
import { APPROVAL_STATES, type ApprovalState } from '../../core/approval.ts';
import { votesOf } from '../approval-text.ts';
import { UsageError } from '../failure.ts';
import { type Io, print, printJson, table } from '../io.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

interface ListFlags extends ClientFlags {
  mine?: boolean;
  job?: string;
  state?: string[];
  limit: string;
}

interface DecideFlags extends ClientFlags {
  key?: string;
  data?: string;
  comment?: string;
  digest?: string;
}

/** `waymark approvals`: what people are asked, as a table or as JSON. */
export function addApprovals(program: Command, io: Io): void {
  withClientFlags(program.command('approvals'))
    .summary('lists what people are asked')
    .description(
      'Lists open approvals, who waits longest first; with --mine those that you may decide, urgent ones first.',
    )
    .option('--mine', 'only what you may decide now')
    .option('--job <job>', 'only those of this job')
    .option('--state <state...>', `these states in place of OPEN: ${APPROVAL_STATES.join(' ')}`)
    .option('--limit <n>', 'at most this many', '50')
    .action(async ({ mine, job, state, limit, ...flags }: ListFlags) => {
      const first = Number(limit);
      if (!Number.isInteger(first) || first < 1 || first > 200)
        throw new UsageError(`--limit must be a whole number from 1 to 200, not ${limit}`);
      const filter = {
        ...(mine ? { mine } : {}),
        ...(job === undefined ? {} : { jobId: job }),
        ...(state ? { states: state.flatMap((word) => word.split(',')).map(parseState) } : {}),
      };
      const { approvals } = await withClient(io, flags, (client) => client.approvals(filter, { first }));
      if (flags.json) printJson(io, approvals);
      else if (approvals.length > 0) print(io, table(HEADER, approvals.map(row)));
      else io.stderr.write('no approvals\n');
    });
}

/** `waymark approve JOB|APPROVAL` */
export function addApprove(program: Command, io: Io): void {
  withDecideFlags(withClientFlags(program.command('approve')))
    .summary('says yes to what a job asks')
    .description(
      'Approves what a job waits for. The job goes on when enough people have. Approving twice does no harm.',
    )
    .option('--data <json>', 'the form, filled in, as `waymark show JOB` suggests it')
    .action((id: string, flags: DecideFlags) => decide(io, 'approve', id, flags));
}

/** `waymark reject JOB|APPROVAL` */
export function addReject(program: Command, io: Io): void {
  withDecideFlags(withClientFlags(program.command('reject')))
    .summary('says no to what a job asks')
    .description('Rejects what a job waits for, which decides at once. Rejecting twice does no harm.')
    .option('--data <json>', 'a rejection needs none, and none is kept')
    .action((id: string, flags: DecideFlags) => decide(io, 'reject', id, flags));
}

function withDecideFlags(command: Command): Command {
  return command
    .argument('<job|approval>', 'id of the job, or of one of its approvals (apr_…)')
    .option('--key <key>', 'with a job: which of its approvals; needed where several are open')
    .option('--comment <text>', 'recorded with the decision')
    .option('--digest <digest>', 'what you have seen: refused when that has changed');
}

async function decide(io: Io, verb: 'approve' | 'reject', id: string, flags: DecideFlags): Promise<void> {
  const options: DecideOptions = {
    ...(flags.key === undefined ? {} : { key: flags.key }),
    ...(flags.data === undefined ? {} : { data: parseData(flags.data) }),
    ...(flags.comment === undefined ? {} : { comment: flags.comment }),
    ...(flags.digest === undefined ? {} : { digest: flags.digest }),
  };
  const decided = await withClient(io, flags, (client) => client[verb](id, options));
  if (flags.json) return printJson(io, decided);
  const { approval, job } = decided;
  const votes = approval.state === 'OPEN' ? `, ${votesOf(approval)} have approved` : '';
  print(io, `${job.id}  ${job.state}  approval ${approval.key} is ${approval.state}${votes}`);
}

const HEADER = ['APPROVAL', 'JOB', 'KEY', 'STATE', 'VOTES', 'REQUESTED', 'EXPIRES', 'TITLE'];

function row(a: Approval): string[] {
  return [a.id, a.job.id, a.key, a.state, votesOf(a), a.requestedAt, a.expiresAt ?? '', a.title];
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--data is not JSON: ${(error as Error).message}`);
  }
}

function parseState(text: string): ApprovalState {
  const state = APPROVAL_STATES.find((s) => s === text.toUpperCase());
  if (!state) throw new UsageError(`${JSON.stringify(text)} is no state; states are ${APPROVAL_STATES.join(', ')}`);
  return state;
}
