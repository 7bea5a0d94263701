import type { Command } from 'commander';
import type { Io } from '../io.ts';
import { withClientFlags } from '../service-client.ts';
import { type WatchFlags, watchJob } from '../watch-job.ts';

/** `waymark watch JOB`: live progress until the end; the exit code is the job's. */
export function addWatch(program: Command, io: Io): void {
  withClientFlags(program.command('watch'))
    .summary('shows a job until its end')
    .description('Shows live progress of a job and prints its result. The exit code says how it ended.')
    .argument('<job>', 'id of the job')
    .option('--timeout <duration>', 'wait no longer; the job goes on (exit code 4)')
    .action((id: string, flags: WatchFlags) => watchJob(io, flags, async () => id));
}
