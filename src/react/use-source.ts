'use client';
import { useCallback, useMemo, useSyncExternalStore } from 'react';
import type { ConnectionState } from '../client/index.ts';
import { useWaymark } from './provider.ts';
import { IDLE, LOADING, type Snapshot, type Source, sharedStreamsOf } from './shared-streams.ts';

/** What every hook gives. */
export interface Live<D> extends Snapshot<D> {
  /** How values come just now. What is shown while it is not `live` may be a little old, never wrong. */
  connection: ConnectionState;
}

/** How values come to the provider's client just now; `reconnecting` before the first stream and on a server. */
export function useConnection(): ConnectionState {
  const client = useWaymark();
  return useSyncExternalStore(
    client.onConnection,
    () => client.connection,
    () => 'reconnecting' as const,
  );
}

/** Reads a source that is shared with all components that read the same. `null`: nothing, and it is not loading. */
export function useSource<D>(source: Source<D> | null): Live<D> {
  const client = useWaymark();
  const connection = useConnection();
  const streams = sharedStreamsOf(client);
  const subscribe = useCallback(
    (onChange: () => void) => (source ? streams.subscribe(source, onChange) : () => {}),
    [source, streams],
  );
  const snapshot = useSyncExternalStore<Snapshot<D>>(
    subscribe,
    () => (source ? streams.snapshot(source) : IDLE),
    () => (source ? LOADING : IDLE),
  );
  return useMemo(() => ({ ...snapshot, connection }), [snapshot, connection]);
}

/** The same text for filters that say the same, in whatever order. */
export function keyOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
