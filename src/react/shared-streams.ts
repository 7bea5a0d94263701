import { RequestError, type WaymarkClient } from '../client/index.ts';

/** What is known of something that is watched. A snapshot never changes; the next one takes its place. */
export interface Snapshot<D> {
  data: D | undefined;
  error: Error | undefined;
  /** Nothing is known yet. */
  isLoading: boolean;
}

/** Where values come from. Two sources of the same key are the same: only one of them runs. */
export interface Source<D> {
  readonly key: string;
  /** Runs until the signal fires. What it throws is the error of the snapshot, and the end of the run. */
  run(out: Output<D>, scope: Scope): Promise<void>;
}

export interface Output<D> {
  readonly data: D | undefined;
  set(data: D): void;
}

export interface Scope {
  client: WaymarkClient<unknown>;
  /** For sources that are made of others. */
  streams: SharedStreams;
  signal: AbortSignal;
}

interface Entry {
  snapshot: Snapshot<unknown>;
  listeners: Set<() => void>;
  /** Of the run; undefined before the first one and after one that ended. */
  stop: AbortController | undefined;
  linger: ReturnType<typeof setTimeout> | undefined;
}

/** A stream outlives its last reader by this much: a change of page, or React's second mount of everything, needs no new one. */
const LINGER_MS = 1_000;

export const LOADING: Snapshot<never> = { data: undefined, error: undefined, isLoading: true };
/** Nothing was asked for. */
export const IDLE: Snapshot<never> = { data: undefined, error: undefined, isLoading: false };

/** The streams of one client, shared by all components that show the same. Nothing runs before the first subscription. */
export class SharedStreams {
  readonly #client: WaymarkClient<unknown>;
  readonly #entries = new Map<string, Entry>();

  constructor(client: WaymarkClient<unknown>) {
    this.#client = client;
  }

  snapshot<D>(source: Source<D>): Snapshot<D> {
    return (this.#entries.get(source.key)?.snapshot as Snapshot<D> | undefined) ?? LOADING;
  }

  /** Told of each new snapshot. Returns the function that ends that; a second call of it does nothing. */
  subscribe<D>(source: Source<D>, onChange: () => void): () => void {
    // Each subscription counts, also when the same function is given twice.
    const listener = () => onChange();
    const entry = this.#entries.get(source.key) ?? this.#create(source.key);
    entry.listeners.add(listener);
    clearTimeout(entry.linger);
    if (!entry.stop) this.#start(source, entry);
    return () => {
      if (!entry.listeners.delete(listener) || entry.listeners.size > 0) return;
      entry.linger = setTimeout(() => {
        this.#entries.delete(source.key);
        entry.stop?.abort(new RequestError('CLIENT_CLOSED', 'nobody reads this any more'));
      }, LINGER_MS);
    };
  }

  #create(key: string): Entry {
    const entry: Entry = { snapshot: LOADING, listeners: new Set(), stop: undefined, linger: undefined };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Also after an error, for whoever comes later: what was refused then may be there now. */
  #start<D>(source: Source<D>, entry: Entry): void {
    const stop = new AbortController();
    const publish = (snapshot: Snapshot<D>) => {
      if (stop.signal.aborted) return;
      entry.snapshot = snapshot;
      for (const listener of [...entry.listeners]) listener();
    };
    const out: Output<D> = {
      get data() {
        return entry.snapshot.data as D | undefined;
      },
      set: (data) => publish({ data, error: undefined, isLoading: false }),
    };
    const end = () => {
      if (entry.stop === stop) entry.stop = undefined;
      stop.abort(new RequestError('CLIENT_CLOSED', 'this run of a stream is over'));
    };
    entry.stop = stop;
    if (entry.snapshot.error) publish({ data: out.data, error: undefined, isLoading: out.data === undefined });
    const run = async () => source.run(out, { client: this.#client, streams: this, signal: stop.signal });
    run()
      .catch((error: unknown) => {
        publish({ data: out.data, error: error instanceof Error ? error : new Error(String(error)), isLoading: false });
      })
      .finally(end);
  }
}

const streamsOfClients = new WeakMap<WaymarkClient<unknown>, SharedStreams>();

export function sharedStreamsOf(client: WaymarkClient<unknown>): SharedStreams {
  const known = streamsOfClients.get(client);
  if (known) return known;
  const streams = new SharedStreams(client);
  streamsOfClients.set(client, streams);
  return streams;
}
