export type ToServer =
  /** Collects garbage; it says `collected`. */
  { kind: 'collect' };

export type FromServer =
  | { kind: 'listening'; url: string }
  | { kind: 'collected'; heapMegabytes: number }
  | { kind: 'failed'; message: string };

/** Runs a server process that listens already: says where, and ends with the benchmark that started it. */
export function serveAt(url: string, close: () => Promise<unknown>): void {
  const say = (message: FromServer): void => void process.send?.(message);
  process.on('message', ({ kind }: ToServer) => {
    // Turns of the event loop lie between, so that what only a finished turn lets go is found by the second.
    if (kind === 'collect') setImmediate(collect, () => setImmediate(collect, () => say(heldNow())));
  });
  process.on('disconnect', () => void close().finally(() => process.exit(0)));
  say({ kind: 'listening', url });
}

function collect(then: () => void): void {
  globalThis.gc?.();
  then();
}

function heldNow(): FromServer {
  const { heapUsed, external } = process.memoryUsage();
  return { kind: 'collected', heapMegabytes: (heapUsed + external) / 2 ** 20 };
}
