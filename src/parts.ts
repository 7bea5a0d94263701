import type { AnyTask } from './core/task.ts';
import { createLiveHub } from './engine/live/index.ts';
import type { Foundation } from './foundation.ts';
import { createHealthServer } from './server/health.ts';
import { createMaintenanceLoop, type MaintenanceLoop } from './worker/maintenance-loop.ts';
import { createWorker, type Worker } from './worker/worker.ts';

/** Where to listen; port 0 takes a free one. */
export interface Address {
  host: string;
  port: number;
}

/** A server that listens. */
export interface RunningServer {
  /** `http://127.0.0.1:4000` */
  readonly url: string;
  /** Not ready at once, clients are sent away (WebSocket code 1012), requests under way end. A second call does nothing. */
  stop(): Promise<void>;
}

/** A worker on the foundation. Nothing happens before its `start`. @throws TypeError for a wrong concurrency */
export function makeWorker(
  { config, database, channel, engine, log }: Foundation,
  options: { tasks: readonly AnyTask[]; queues?: readonly string[]; concurrency: number },
): Worker {
  const { heartbeatMs, leaseMs, pollMs, graceMs, maxBlockMs, maxBytes } = config;
  return createWorker({
    ...options,
    execution: engine.execution,
    channel,
    db: database.work.user,
    databaseUrl: config.databaseUrl,
    publicUrl: config.publicUrl ?? `http://${config.host}:${config.port}`,
    log,
    options: { heartbeatMs, leaseMs, pollMs, graceMs, maxBlockMs, maxBytes },
  });
}

/** The maintenance of this process. Nothing happens before its `start`. */
export function makeMaintenance({ config, engine, log }: Foundation): MaintenanceLoop {
  return createMaintenanceLoop({
    maintenance: engine.maintenance,
    log,
    sweepMs: config.sweepMs,
    pollMs: config.pollMs,
  });
}

/** Room in a request for everything but the input of a job. */
const REQUEST_OVERHEAD_BYTES = 500_000;

/** The API of this process. Resolves when it listens. @throws Error with the system's code (`EADDRINUSE`) */
export async function startServer(
  { channel, config, database, engine, log }: Foundation,
  address: Address,
): Promise<RunningServer> {
  // GraphQL is half of the memory of a process, and a worker never needs it.
  const { createServer } = await import('./server/server.ts');
  const live = createLiveHub({ db: database.read, channel, log, pollMs: config.pollMs });
  const server = createServer({
    ...address,
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
      read: database.read,
      retainMs: config.retainMs,
    },
    publicUrl: config.publicUrl,
    // Behind a proxy pages come from the public address.
    allowedOrigins: config.publicUrl === null ? [] : [new URL(config.publicUrl).origin],
    limits: { bodyBytes: config.maxBytes.input + REQUEST_OVERHEAD_BYTES },
  });
  // Sockets first, which tells clients to come back; streams that are left have nobody to read them.
  return listening(server, () => server.close().then(() => live.close()));
}

/** Only `/healthz` and `/readyz`, for a process without an API. @throws as `startServer` */
export async function startHealthServer({ database, log }: Foundation, address: Address): Promise<RunningServer> {
  const server = createHealthServer({ ...address, log, read: database.read });
  return listening(server, () => server.close());
}

async function listening(
  server: { readonly url: string; listen(): Promise<void> },
  stop: () => Promise<void>,
): Promise<RunningServer> {
  try {
    await server.listen();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: server.url, stop };
}
