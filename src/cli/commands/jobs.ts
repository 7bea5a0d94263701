import type { Command } from 'commander';
import type { Job } from '../../client/index.ts';
import { JOB_STATES, type JobState } from '../../core/state.ts';
import { UsageError } from '../failure.ts';
import { type Io, print, printJson, table } from '../io.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

interface Flags extends ClientFlags {
  state?: string[];
  task?: string[];
  queue?: string[];
  limit: string;
}

/** `waymark jobs`: the newest jobs, as a table or as JSON. */
export function addJobs(program: Command, io: Io): void {
  withClientFlags(program.command('jobs'))
    .summary('lists jobs')
    .description('Lists jobs, newest first.')
    .option('--state <state...>', `only these states: ${JOB_STATES.join(' ')}`)
    .option('--task <name...>', 'only these tasks')
    .option('--queue <name...>', 'only these queues')
    .option('--limit <n>', 'at most this many', '50')
    .action(async (flags: Flags) => {
      const limit = Number(flags.limit);
      if (!Number.isInteger(limit) || limit < 1)
        throw new UsageError(`--limit must be a whole number from 1, not ${flags.limit}`);
      const filter = {
        ...(flags.state ? { states: words(flags.state).map(parseState) } : {}),
        ...(flags.task ? { tasks: words(flags.task) } : {}),
        ...(flags.queue ? { queues: words(flags.queue) } : {}),
      };
      const found: Job[] = [];
      await withClient(io, flags, async (client) => {
        for (let after: string | undefined; found.length < limit; ) {
          const page = await client.jobs(filter, {
            first: Math.min(200, limit - found.length),
            ...(after ? { after } : {}),
          });
          found.push(...page.jobs);
          if (!page.hasNextPage || page.endCursor === null) return;
          after = page.endCursor;
        }
      });
      if (flags.json) printJson(io, found);
      else if (found.length > 0)
        print(io, table(['ID', 'TASK', 'STATE', 'PROGRESS', 'ATTEMPT', 'CREATED'], found.map(row)));
      else io.stderr.write('no jobs\n');
    });
}

function row(job: Job): string[] {
  const { progress } = job;
  const how = progress?.fraction != null ? `${Math.floor(progress.fraction * 100)} %` : (progress?.stage ?? '');
  return [job.id, job.task, job.state, how, `${job.attemptNumber}`, job.createdAt];
}

/** `--state a,b c` is three words. */
function words(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(',')).filter((word) => word !== '');
}

function parseState(text: string): JobState {
  const state = JOB_STATES.find((s) => s === text.toUpperCase());
  if (!state) throw new UsageError(`${JSON.stringify(text)} is no state; states are ${JOB_STATES.join(', ')}`);
  return state;
}
