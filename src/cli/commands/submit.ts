import type { Command } from 'commander';
import type { SubmitOptions } from '../../client/index.ts';
import { UsageError } from '../failure.ts';
import { type Io, print, printJson } from '../io.ts';
import { withClient, withClientFlags } from '../service-client.ts';
import { type WatchFlags, watchJob } from '../watch-job.ts';

interface Flags extends WatchFlags {
  key?: string;
  watch?: boolean;
  queue?: string;
  priority?: string;
  title?: string;
  delay?: string;
  tag?: string[];
}

/** `waymark submit TASK [JSON]`: prints the id, or with `--watch` the result. */
export function addSubmit(program: Command, io: Io): void {
  withClientFlags(program.command('submit'))
    .summary('submits a job')
    .description('Submits a job and prints its id; with --watch it shows live progress and prints the result.')
    .argument('<task>', 'name of the task')
    .argument('[json]', 'the input, as JSON')
    .option('--key <key>', 'idempotency key: the same key and input give the same job')
    .option('--title <title>', 'what people see')
    .option('--queue <queue>', "another queue than the task's")
    .option('--priority <n>', '-100 to 100; higher goes first')
    .option('--delay <duration>', 'not before this much time has passed')
    .option('--tag <tag...>', 'tags')
    .option('--watch', 'wait for the end and show progress')
    .option('--timeout <duration>', 'with --watch: wait no longer; the job goes on (exit code 4)')
    .action(async (task: string, json: string | undefined, flags: Flags) => {
      const input = parseInput(json);
      const options = submitOptions(flags);
      if (flags.watch) {
        return watchJob(io, flags, async (client) => {
          const { id, deduplicated } = await client.submit(task, input, options);
          io.stderr.write(`${id}${deduplicated ? ' (existed before)' : ''}\n`);
          return id;
        });
      }
      if (flags.timeout !== undefined) throw new UsageError('--timeout needs --watch');
      const submitted = await withClient(io, flags, (client) => client.submit(task, input, options));
      if (flags.json) printJson(io, { ...submitted.job, deduplicated: submitted.deduplicated });
      else print(io, submitted.id);
    });
}

function parseInput(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new UsageError(`the input is not JSON: ${(error as Error).message}`);
  }
}

function submitOptions({ key, title, queue, priority, delay, tag }: Flags): SubmitOptions {
  if (priority !== undefined && !/^-?\d{1,3}$/.test(priority)) {
    throw new UsageError(`--priority must be a whole number from -100 to 100, not ${JSON.stringify(priority)}`);
  }
  return {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(title === undefined ? {} : { title }),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    ...(delay === undefined ? {} : { delay }),
    ...(tag === undefined ? {} : { tags: tag }),
  };
}
