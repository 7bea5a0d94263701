import type { Channel, ChannelReports, Operation, StreamSink } from './channel.ts';
import { RequestError } from './errors.ts';
import { pause, retryWaitMs } from './waiting.ts';

const POLL_MS = 1_000;
/** The longest wait while nothing changes, and while nobody answers. */
const SLOWEST_MS = 5_000;

export type Request = (
  query: string,
  variables: Record<string, unknown>,
  options: { signal: AbortSignal },
) => Promise<Record<string, unknown>>;

/** Reads instead of listening: about once a second, up to five while nothing changes. */
export function createPollingChannel(request: Request, reports: ChannelReports): Channel {
  const open = new Set<() => void>();

  function subscribe(operation: Operation, sink: StreamSink): () => void {
    const { signal, stop } = stopper();
    const read = operation.poll();

    async function run(): Promise<void> {
      let idle = 0;
      let failures = 0;
      while (!signal.aborted) {
        let waitMs: number;
        try {
          const { messages, more, complete, blind } = await read((query, vars) => request(query, vars, { signal }));
          if (signal.aborted) return;
          failures = 0;
          reports.opened();
          for (const message of messages) if (!signal.aborted) sink.next(message);
          if (signal.aborted) return;
          if (complete) {
            stop();
            return sink.complete();
          }
          idle = messages.length > 0 || blind ? 0 : idle + 1;
          waitMs = more ? 0 : spread(Math.min(SLOWEST_MS, POLL_MS * 1.25 ** idle));
        } catch (error) {
          if (signal.aborted) return;
          if (!(error instanceof RequestError) || !error.isUnavailable) {
            stop();
            return sink.error(error instanceof RequestError ? error : unreadable(error));
          }
          reports.failed();
          waitMs = Math.min(SLOWEST_MS, retryWaitMs(failures++));
        }
        await pause(waitMs, signal).catch(() => {});
      }
    }
    void run();
    return stop;
  }

  function stopper() {
    const controller = new AbortController();
    const stop = () => {
      open.delete(stop);
      controller.abort();
    };
    open.add(stop);
    return { signal: controller.signal, stop };
  }

  return {
    subscribe,
    // Each read has its own request: there is nothing to give up.
    reset() {},
    close() {
      for (const stop of open) stop();
    },
  };
}

/** Many clients that began at once do not ask at once for ever. */
const spread = (ms: number) => ms * (0.85 + Math.random() * 0.3);

const unreadable = (cause: unknown) => new RequestError('BAD_RESPONSE', String(cause), { cause });
