import type { Command } from 'commander';
import type { Roles } from '../../app.ts';
import { type Config, type Environment, parseConfig } from '../../config.ts';
import { UsageError } from '../failure.ts';
import { type Io, print } from '../io.ts';
import { createLog } from '../log.ts';

interface Flags {
  tasks?: string;
  queues?: string;
  concurrency?: string;
}

const TASKS = '--tasks <file>';

/** `waymark start`: everything in one process. */
export function addStart(program: Command, io: Io): void {
  program
    .command('start')
    .summary('runs all in one process')
    .description('Runs API, worker and maintenance in one process; embedded when no DATABASE_URL is set.')
    .option(TASKS, 'tasks to run; JavaScript or TypeScript')
    .option('--queues <names>', 'only these queues, separated by commas')
    .option('--concurrency <n>', 'slots of the worker (WAYMARK_CONCURRENCY)')
    .action((flags: Flags) => serve(io, flags, { api: true, worker: flags.tasks !== undefined, maintenance: true }));
}

/** `waymark api`: no worker. */
export function addApi(program: Command, io: Io): void {
  program
    .command('api')
    .summary('runs the API and maintenance')
    .description('Runs the API and maintenance, no worker. Needs DATABASE_URL.')
    .option(TASKS, 'tasks that the API is to know before a worker has registered them')
    .action((flags: Flags) => serve(io, flags, { api: true, worker: false, maintenance: true }, 'api'));
}

/** `waymark worker`: no API. */
export function addWorker(program: Command, io: Io): void {
  program
    .command('worker')
    .summary('runs a worker and maintenance')
    .description('Runs a worker and maintenance, no API; /healthz when PORT is set. Needs DATABASE_URL.')
    .requiredOption(TASKS, 'tasks to run; JavaScript or TypeScript')
    .option('--queues <names>', 'only these queues, separated by commas')
    .option('--concurrency <n>', 'slots of the worker (WAYMARK_CONCURRENCY)')
    .action((flags: Flags) => serve(io, flags, { api: false, worker: true, maintenance: true }, 'worker'));
}

/** @param needsDatabase the command that cannot share an embedded database with another process */
async function serve(io: Io, flags: Flags, roles: Roles, needsDatabase?: string): Promise<void> {
  const config = configOf(io.env, flags);
  if (needsDatabase && config.databaseUrl === null) {
    throw new UsageError(
      `waymark ${needsDatabase} needs DATABASE_URL: an embedded database belongs to one process. ` +
        'Without Postgres, `waymark start` runs everything in one',
    );
  }
  // Client commands must not wait for the database's and the server's code to load.
  const { runService } = await import('../run-service.ts');
  await runService({
    config,
    roles,
    log: createLog(config, io),
    ...(flags.tasks === undefined ? {} : { tasksFile: flags.tasks }),
    ...(flags.queues === undefined ? {} : { queues: queueNames(flags.queues) }),
    onListening: ({ url, graphql }) => {
      if (graphql) print(io, `GraphQL  ${url}/graphql`);
      print(io, `Health   ${url}/healthz  ${url}/readyz`);
    },
  });
}

function configOf(env: Environment, { concurrency }: Flags): Config {
  return parseConfig(concurrency === undefined ? env : { ...env, WAYMARK_CONCURRENCY: concurrency });
}

function queueNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.some((name) => name === ''))
    throw new UsageError(`--queues must be names separated by commas, not ${JSON.stringify(text)}`);
  return names;
}
