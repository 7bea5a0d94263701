import { afterAll, onTestFinished } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import type { Logger } from '../../src/core/log.ts';
import type { TaskDefinition } from '../../src/core/task.ts';
import type { Executor } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createLiveHub, type LiveHub } from '../../src/engine/live/index.ts';
import type { EngineOptions } from '../../src/engine/types.ts';
import type { LiveChannel } from '../../src/events/channel.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createServer, type ServerOptions, type WaymarkServer } from '../../src/server/server.ts';
import type { Store, TestDatabase } from '../support/database.ts';
import { engineOptions, taskNamed } from '../support/factory.ts';

/** One error of an answer. */
export interface AnswerError {
  message: string;
  path?: (string | number)[];
  extensions: { code: string; [more: string]: unknown };
}

export interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  data?: any;
  errors?: AnswerError[];
}

/** A service over a real socket, on a database of its own, with an engine in reach. */
export interface Service {
  url: string;
  database: TestDatabase;
  engine: Engine;
  live: LiveHub;
  server: WaymarkServer;
  /** What was logged as an error. */
  errors: { data: object; message: string }[];
  /** Sends an operation by POST and gives status and answer. */
  post(
    query: string,
    variables?: Record<string, unknown>,
    headers?: Record<string, string>,
  ): Promise<Answer & { status: number }>;
  /** Registers a worker that has these tasks; gives its id. */
  worker(tasks: readonly TaskDefinition[], leaseMs?: number): Promise<string>;
}

/** Starts a service; it is stopped after the test, or after the file when it was started in a hook. */
export async function startService(
  open: Store['open'],
  options: {
    server?: Partial<Omit<ServerOptions, 'deps'>>;
    engine?: Partial<EngineOptions>;
    /** Default: one in memory. It is closed with the service. */
    channel?: LiveChannel;
    /** A database that is open already. */
    database?: TestDatabase;
    /** In place of the database's own handle for the API's reads. */
    read?: Executor;
  } = {},
): Promise<Service> {
  const database = options.database ?? (await open());
  const settings = engineOptions(options.engine);
  const channel = options.channel ?? createMemoryChannel();
  const engine = createEngine({ database, channel, options: settings });
  const errors: Service['errors'] = [];
  const log: Logger = {
    debug() {},
    info() {},
    warn() {},
    error: (data, message) => void errors.push({ data, message }),
  };
  const live = createLiveHub({ db: database.read, channel, log });
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    log,
    deps: {
      jobs: engine.jobs,
      graphs: engine.graphs,
      approvals: engine.approvals,
      bulk: engine.bulk,
      queues: engine.queues,
      artifacts: engine.artifacts,
      schedules: engine.schedules,
      live,
      read: options.read ?? database.read,
      retainMs: settings.retainMs,
    },
    ...options.server,
  });
  await server.listen();
  closeAfterwards(async () => {
    await live.close();
    await server.close();
    await channel.close();
  });
  return {
    url: server.url,
    database,
    engine,
    live,
    server,
    errors,
    async post(query, variables, headers) {
      const response = await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query, variables }),
      });
      return { status: response.status, ...((await response.json()) as Answer) };
    },
    async worker(tasks, leaseMs = 3_600_000) {
      const id = newUuid();
      const worker = { id, host: 'test', pid: 1, queues: null, slots: 10, leaseMs };
      await engine.execution.registerWorker({ ...worker, tasks: tasks.length > 0 ? tasks : [taskNamed('echo')] });
      return id;
    },
  };
}

// Runs before the databases are closed, which were asked for first.
const afterFile: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of afterFile.splice(0)) await close();
});

function closeAfterwards(close: () => Promise<void>): void {
  try {
    onTestFinished(close);
  } catch {
    // Not inside a test: a hook.
    afterFile.push(close);
  }
}
