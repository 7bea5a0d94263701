import type { Command } from 'commander';
import type { Job, WaymarkClient } from '../../client/index.ts';
import { EXIT } from '../exit-code.ts';
import { failureOf, UsageError } from '../failure.ts';
import { type Io, print, printJson } from '../io.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';
import { actOnFilter, type FilterFlags, isByFilter, withFilterFlags } from './act-on-filter.ts';

interface Flags extends ClientFlags, FilterFlags {
  reason?: string;
  fromStart?: boolean;
}

/** `waymark cancel JOB… | --filter JSON` */
export function addCancel(program: Command, io: Io): void {
  withFilterFlags(withClientFlags(program.command('cancel')))
    .summary('cancels jobs')
    .description('Cancels waiting jobs at once and asks running ones to stop. Canceling twice does no harm.')
    .argument('[job...]', 'ids')
    .option('--reason <text>', 'recorded with the job')
    .action((ids: string[], flags: Flags) => {
      const reason = flags.reason === undefined ? {} : { reason: flags.reason };
      if (isByFilter(ids, flags)) {
        return actOnFilter(io, flags, 'canceled', (client, filter, o) =>
          client.cancelJobs(filter, { ...reason, ...o }),
        );
      }
      return actOnEach(io, flags, ids, (client, id) => client.cancel(id, reason));
    });
}

/** `waymark retry JOB… | --filter JSON` */
export function addRetry(program: Command, io: Io): void {
  withFilterFlags(withClientFlags(program.command('retry')))
    .summary('retries jobs')
    .description('Opens the next run of finished jobs behind their last checkpoint; waiting ones become due now.')
    .argument('[job...]', 'ids')
    .option('--from-start', 'drop the checkpoints')
    .option('--reason <text>', 'recorded with the job')
    .action((ids: string[], flags: Flags) => {
      const options = {
        ...(flags.fromStart ? { fromStart: true } : {}),
        ...(flags.reason === undefined ? {} : { reason: flags.reason }),
      };
      if (isByFilter(ids, flags)) {
        return actOnFilter(io, flags, 'retried', (client, filter, o) => client.retryJobs(filter, { ...options, ...o }));
      }
      return actOnEach(io, flags, ids, (client, id) => client.retry(id, options));
    });
}

/** Each job for itself: one that is refused is named, the others are done all the same. */
async function actOnEach(
  io: Io,
  flags: Flags,
  ids: readonly string[],
  act: (client: WaymarkClient<unknown>, id: string) => Promise<Job>,
): Promise<void> {
  const done: Job[] = [];
  await withClient(io, flags, async (client) => {
    for (const id of ids) {
      try {
        const job = await act(client, id);
        done.push(job);
        if (!flags.json)
          print(io, `${id}  ${job.state}${job.state === 'RUNNING' && job.cancellation ? ', asked to stop' : ''}`);
      } catch (error) {
        const { code, message } = failureOf(error);
        if (code !== EXIT.refused || ids.length === 1) throw error;
        io.stderr.write(`${id}: ${message}\n`);
      }
    }
  });
  if (flags.json) printJson(io, done);
  if (done.length < ids.length) throw new UsageError(`${ids.length - done.length} of ${ids.length} refused`);
}
