import { type Client, createClient } from 'graphql-ws';

/**
 * One WebSocket for all subscriptions of a page, for every client that takes one of graphql-ws: it comes back for ever,
 * and `jobEvents` goes on behind the last event that came. The other subscriptions begin by themselves with how things
 * are now. Select `seq` of an event, and take `after` from a variable of this name.
 */
export function resumingSocket(url: string): Client {
  let silence: ReturnType<typeof setTimeout> | undefined;
  const socket = createClient({
    url: url.replace(/^http/, 'ws'),
    retryAttempts: Number.POSITIVE_INFINITY,
    // Without it a connection that is refused, as while a service restarts, would be the end.
    shouldRetry: () => true,
    retryWait: (n) => pause(Math.min(250 * 2 ** n, 15_000) * (0.5 + Math.random() / 2)),
    keepAlive: 10_000,
    on: {
      // graphql-ws only sends pings: a connection that is gone without a word would be believed for ever.
      ping: (received) => {
        if (!received) silence = setTimeout(() => socket.terminate(), 5_000);
      },
      pong: (received) => {
        if (received) clearTimeout(silence);
      },
      closed: () => clearTimeout(silence),
    },
  });

  return {
    ...socket,
    subscribe(payload, sink) {
      // This object is sent again on every connection, as it is by then.
      const sent = { ...payload, variables: { ...payload.variables } as Record<string, unknown> };
      const stop = socket.subscribe<Record<string, unknown>>(sent, {
        ...sink,
        next(result) {
          const { seq } = (result.data?.jobEvents ?? {}) as { seq?: number };
          if (seq !== undefined && seq <= Number(sent.variables.after ?? 0)) return;
          if (seq !== undefined) sent.variables.after = seq;
          sink.next(result as Parameters<typeof sink.next>[0]);
        },
      });
      // Not between a value and the end that came with it, which graphql-ws would count twice.
      return () => queueMicrotask(stop);
    },
  };
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
