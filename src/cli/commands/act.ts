import type { Command } from 'commander';
import type { Job, WaymarkClient } from '../../client/index.ts';
import { EXIT } from '../exit-code.ts';
import { failureOf, UsageError } from '../failure.ts';
import { type Io, print, printJson } from '../io.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

interface Flags extends ClientFlags {
  reason?: string;
  fromStart?: boolean;
}

/** `waymark cancel JOB…` */
export function addCancel(program: Command, io: Io): void {
  withClientFlags(program.command('cancel'))
    .summary('cancels jobs')
    .description('Cancels waiting jobs at once and asks running ones to stop. Canceling twice does no harm.')
    .argument('<job...>', 'ids')
    .option('--reason <text>', 'recorded with the job')
    .action((ids: string[], flags: Flags) =>
      actOnEach(io, flags, ids, (client, id) =>
        client.cancel(id, flags.reason === undefined ? {} : { reason: flags.reason }),
      ),
    );
}

/** `waymark retry JOB…` */
export function addRetry(program: Command, io: Io): void {
  withClientFlags(program.command('retry'))
    .summary('retries jobs')
    .description('Opens the next run of finished jobs behind their last checkpoint; waiting ones become due now.')
    .argument('<job...>', 'ids')
    .option('--from-start', 'drop the checkpoints')
    .option('--reason <text>', 'recorded with the job')
    .action((ids: string[], flags: Flags) =>
      actOnEach(io, flags, ids, (client, id) =>
        client.retry(id, {
          ...(flags.fromStart ? { fromStart: true } : {}),
          ...(flags.reason === undefined ? {} : { reason: flags.reason }),
        }),
      ),
    );
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
