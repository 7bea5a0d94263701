import type { Config } from './config.ts';
import type { Logger } from './core/log.ts';
import type { AnyTask } from './core/task.ts';
import { type Foundation, openFoundation, type Setup } from './foundation.ts';
import { makeMaintenance, makeWorker, startHealthServer, startServer } from './parts.ts';

/** What a process does. */
export interface Roles {
  api: boolean;
  worker: boolean;
  maintenance: boolean;
}

export interface AppOptions {
  roles: Roles;
  log: Logger;
  /** Tasks to run; an API without a worker only makes them known. */
  tasks?: { tasks: readonly AnyTask[]; setup?: Setup | undefined } | undefined;
  /** Queues that the worker serves. Default: all. */
  queues?: readonly string[];
  /** Told where the process listens, once it does. */
  onListening?: (address: Listening) => void;
}

export interface Listening {
  /** `http://127.0.0.1:4000` */
  url: string;
  /** Whether the API is there too, and not only /healthz. */
  graphql: boolean;
}

/** One process, put together from its parts. */
export interface App {
  /** Starts the parts in order. What was started is stopped again when one fails. May be called once. */
  start(): Promise<void>;
  /** Stops the parts, the newest first; also in mid-start. Handlers get their grace time. A second call does nothing. */
  stop(): Promise<void>;
}

type Part = { stop(): Promise<void> };

/** Puts a process together: store → channel → engine → server → maintenance → worker. Nothing is opened before `start`. */
export function createApp(config: Config, options: AppOptions): App {
  const { log } = options;
  const parts: Part[] = [];
  const stopping = new AbortController();
  let starting: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  /** Adds a part, unless the app was stopped meanwhile: then it goes at once. */
  async function add<T extends Part>(part: T | Promise<T>): Promise<T> {
    const added = await part;
    parts.push(added);
    stopping.signal.throwIfAborted();
    return added;
  }

  async function start(): Promise<void> {
    const { roles, tasks } = options;
    const where = config.databaseUrl === null ? `the embedded database in ${config.dataDir}` : 'Postgres';
    log.info({ roles: names(roles), live: config.redisUrl === null ? 'in-process' : 'Redis' }, `starting on ${where}`);
    const foundation = await openFoundation(config, { log, setup: tasks?.setup, signal: stopping.signal });
    await add({ stop: () => foundation.close() });
    // Known before the API is: who finds the service ready can submit.
    if (tasks) {
      const definitions = tasks.tasks.map((task) => task.definition);
      await foundation.whenReachable(() => foundation.engine.execution.registerTasks(definitions));
    }
    // Before the worker: a port that is taken must not end a process that has claimed jobs already.
    const address = roles.api || config.portIsSet ? await listen(foundation, roles.api) : null;
    if (roles.maintenance) (await add(makeMaintenance(foundation))).start();
    if (tasks && roles.worker) await startWorker(foundation, tasks.tasks);
    if (address) options.onListening?.(address);
  }

  async function startWorker(foundation: Foundation, tasks: readonly AnyTask[]): Promise<void> {
    const { queues } = options;
    const worker = makeWorker(foundation, { tasks, concurrency: config.concurrency, ...(queues ? { queues } : {}) });
    await (await add(worker)).start();
  }

  async function listen(foundation: Foundation, graphql: boolean): Promise<Listening> {
    const { host, port } = config;
    const { url } = await add((graphql ? startServer : startHealthServer)(foundation, { host, port }));
    foundation.database.setAddress(url);
    log.info({ url }, 'listening');
    return { url, graphql };
  }

  async function stopAll(): Promise<void> {
    stopping.abort(new Error('stopped'));
    await starting?.catch(() => {});
    // Worker and server go together: nothing is claimed any more, and clients are sent away, while handlers finish.
    const [foundation, ...others] = parts;
    const results = await Promise.allSettled(others.reverse().map((part) => part.stop()));
    for (const result of results)
      if (result.status === 'rejected') log.error({ err: result.reason }, 'a part did not stop well');
    await foundation?.stop();
    log.info({}, 'stopped');
  }

  return {
    start() {
      if (starting) throw new Error('the app was started before');
      starting = start();
      return starting;
    },
    stop() {
      stopped ??= stopAll();
      return stopped;
    },
  };
}

/** Brings the database up to date and closes it again. @throws as `openFoundation` */
export async function migrateOnce(config: Config, log: Logger): Promise<void> {
  const foundation = await openFoundation({ ...config, redisUrl: null }, { log });
  await foundation.close();
}

function names(roles: Roles): string[] {
  return Object.entries(roles).flatMap(([name, has]) => (has ? [name] : []));
}
