/** How a system's worker process is set. */
export interface WorkerSettings {
  databaseUrl: string;
  redisUrl: string;
  /** `throughput`: the setting with the best drain. `latency`: the one with the quickest start of a single job. */
  tuning: 'throughput' | 'latency';
}

export type ToWorker =
  /** Starts the worker; it says `started`, then `drained` when that many jobs were handled. */
  | { kind: 'start'; jobs: number }
  /** Stops it in good order; it says `stopped`. */
  | { kind: 'stop' };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'started' }
  /** One handler began; sent with `latency` only. Nanoseconds of the machine's monotonic clock, as a decimal text. */
  | { kind: 'handled'; at: string }
  /** When the first handler began, and what the process has used of the processors since the start. */
  | { kind: 'drained'; first: string; cpuMicros: number }
  | { kind: 'stopped' }
  | { kind: 'failed'; message: string };

/** A system's worker: `handler` is the body of its only task. */
export type StartWorker = (settings: WorkerSettings, handler: () => void) => Promise<{ stop(): Promise<unknown> }>;

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
    if (handled < wanted) return;
    const { user, system } = process.cpuUsage(cpu);
    say({ kind: 'drained', first: String(first), cpuMicros: user + system });
  };

  const obey = async (message: ToWorker): Promise<void> => {
    if (message.kind === 'start') {
      handled = 0;
      wanted = message.jobs;
      cpu = process.cpuUsage();
      running = await startWorker(settings, handler);
      say({ kind: 'started' });
    } else {
      await running?.stop();
      running = undefined;
      say({ kind: 'stopped' });
    }
  };

  process.on('message', (message: ToWorker) => {
    obey(message).catch((error) => say({ kind: 'failed', message: String(error?.stack ?? error) }));
  });
  process.on('disconnect', () => process.exit(0));
  say({ kind: 'ready' });
}
