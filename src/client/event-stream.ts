import { type GraphQLFault, graphqlError, refusalIn } from './answers.ts';
import type { Channel, ChannelReports, Credentials, Operation, StreamSink } from './channel.ts';
import { RequestError } from './errors.ts';
import { readServerSentEvents } from './server-sent-events.ts';
import { pause, retryWaitMs } from './waiting.ts';

/** The service sends a sign of life at once: a stream without one by then is held back on its way. */
const OPEN_MS = 3_000;
/** It sends one every 12 s; silence for this long means that the connection is gone. */
const SILENCE_MS = 30_000;

export interface EventStreamChannel extends Channel {
  /** Streams now. */
  count(): number;
}

/** GraphQL over server-sent events, "distinct connections" mode: a POST for each stream, whose answer does not end. */
export function createEventStreamChannel(
  { url, fetch: send }: { url: string; fetch: typeof fetch },
  credentials: Credentials,
  reports: ChannelReports,
): EventStreamChannel {
  const streams = new Set<{ stop(): void; hangUp(): void }>();
  /** Streams that were open and are being opened again. */
  const broken = new Set<object>();

  function subscribe(operation: Operation, sink: StreamSink): () => void {
    const over = new AbortController();
    let request = new AbortController();
    const stream = {
      stop() {
        over.abort();
        request.abort();
        streams.delete(stream);
        broken.delete(stream);
      },
      hangUp: () => request.abort(),
    };
    streams.add(stream);

    async function run(): Promise<void> {
      for (let tries = 0; !over.signal.aborted; ) {
        request = new AbortController();
        let opened = false;
        const end = await receive(operation, sink, request, () => {
          opened = true;
          tries = 0;
          broken.delete(stream);
          if (broken.size === 0) reports.opened();
        });
        if (over.signal.aborted) return;
        if (end === 'done') return stream.stop();
        if (opened) {
          broken.add(stream);
          reports.lost();
        } else reports.failed(end === 'slow');
        await pause(retryWaitMs(tries++), over.signal).catch(() => {});
      }
    }
    void run();
    return stream.stop;
  }

  /** One request. `done`: the sink was told the end; else what it broke by. Nothing is told after `request` is aborted. */
  async function receive(
    operation: Operation,
    sink: StreamSink,
    request: AbortController,
    onOpen: () => void,
  ): Promise<'done' | 'broken' | 'slow'> {
    let slow = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const expectWithin = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        slow = true;
        request.abort();
      }, ms);
    };
    expectWithin(OPEN_MS);
    try {
      const response = await send(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...(await credentials()) },
        body: JSON.stringify({ query: operation.query, variables: operation.variables }),
        signal: request.signal,
      });
      if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        // A proxy that does not let streams through, or stands in for a service that restarts, has nothing to say to us.
        const refusal = refusalIn(await response.text());
        if (refusal) throw refusal;
        return 'broken';
      }
      let opened = false;
      const onBytes = () => {
        if (!opened) onOpen();
        opened = true;
        expectWithin(SILENCE_MS);
      };
      for await (const { event, data } of readServerSentEvents(response.body, onBytes)) {
        if (request.signal.aborted) return 'broken';
        if (event === 'next') {
          const result = JSON.parse(data) as { data?: Record<string, unknown>; errors?: GraphQLFault[] };
          if (result.errors?.length || !result.data) throw graphqlError(result.errors ?? []);
          sink.next(result.data);
        } else if (event === 'complete') {
          sink.complete();
          return 'done';
        }
      }
      return 'broken';
    } catch (error) {
      if (!(error instanceof RequestError) || request.signal.aborted) return slow ? 'slow' : 'broken';
      sink.error(error);
      return 'done';
    } finally {
      clearTimeout(timer);
      request.abort();
    }
  }

  return {
    subscribe,
    count: () => streams.size,
    reset() {
      for (const stream of streams) stream.hangUp();
    },
    close() {
      for (const stream of streams) stream.stop();
    },
  };
}
