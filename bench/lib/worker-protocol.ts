/** How a system's worker process is set. */
export interface WorkerSettings {
  databaseUrl: string;
  redisUrl: string;
  /** Of all its keys in Redis, for a system that can share one with others by that. */
  redisPrefix: string;
  /** `throughput`: the setting with the best drain. `latency`: the one with the quickest start of a single job. */
  tuning: 'throughput' | 'latency';
}

export type ToWorker =
  /**
   * Starts the worker; it says `started`, then `drained` when that many handlers began. With `atOnce` no more than so
   * many run at a time, whatever the tuning has.
   */
  | { kind: 'start'; jobs: number; atOnce?: number }
  /** Stops it in good order; it says `stopped`. */
  | { kind: 'stop' };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'started' }
  /** One handler began; sent with `latency` only. Nanoseconds of the machine's monotonic clock, as a decimal text. */
  | { kind: 'handled'; at: string }
  /** The last handler began; `first` says when the first one did. */
  | { kind: 'drained'; first: string }
  /** `cpuMicros` is what the process used of the processors from `start` to `stop`. */
  | { kind: 'stopped'; cpuMicros: number }
  | { kind: 'failed'; message: string };

/** A system's worker: `handler` is the body of its tasks, or the beginning of one that has steps. */
export type StartWorker = (
  settings: WorkerSettings & { atOnce?: number },
  handler: () => void,
) => Promise<{ stop(): Promise<unknown> }>;

/** Runs a worker process: the counting and the clock are the same for every system. */
export function serveWorker(startWorker: StartWorker): void {
  const settings = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings;
  const say = (message: FromWorker): void => void process.send?.(message);
  let running: { stop(): Promise<unknown> } | undefined;
  let wanted = 0;
  let handled = 0;
  let first = 0n;
  let cpu = process.cpuUsage();

  const handler = (): void => {
    const now = process.hrtime.bigint();
    if (handled++ === 0) first = now;
    if (settings.tuning === 'latency') say({ kind: 'handled', at: String(now) });
    if (handled === wanted) say({ kind: 'drained', first: String(first) });
  };

  const obey = async (message: ToWorker): Promise<void> => {
    if (message.kind === 'start') {
      handled = 0;
      wanted = message.jobs;
      cpu = process.cpuUsage();
      running = await startWorker({ ...settings, atOnce: message.atOnce }, handler);
      say({ kind: 'started' });
    } else {
      // A system that runs many handlers ahead of their completion pays for that after the last one began.
      const { user, system } = process.cpuUsage(cpu);
      await running?.stop();
      running = undefined;
      say({ kind: 'stopped', cpuMicros: user + system });
    }
  };

  process.on('message', (message: ToWorker) => {
    obey(message).catch((error) => say({ kind: 'failed', message: String(error?.stack ?? error) }));
  });
  process.on('disconnect', () => process.exit(0));
  say({ kind: 'ready' });
}
