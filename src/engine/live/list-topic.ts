import { setTimeout as sleep } from 'node:timers/promises';
import type { JobChange } from '../../core/change.ts';
import { Unavailable } from '../../core/errors.ts';
import type { JobRow } from '../../core/job.ts';
import { AWAY_MS } from './pace.ts';
import type { Feeds, ListWatcher, TenantFeed } from './tenant-feed.ts';
import type { ChangeFilter, JobsChanged } from './types.ts';

export interface ListTopicOptions {
  tenant: string;
  filter: ChangeFilter;
  /** Changed jobs that are kept; more become a reset. */
  maxChanged: number;
  /** Shortest time between two reads, however many ask at whatever moments. */
  readEveryMs: number;
}

/** A stream that shows a list. */
export interface ListReader {
  /** Something has changed: it may ask for it. */
  onNews(): void;
  /** What it was given and has not sent yet. */
  readonly pending: JobsChanged | undefined;
  /** Takes the place of what is pending, and has it in it. */
  onMessage(message: JobsChanged): void;
}

/**
 * One list for all streams that show it. Changes are gathered, each job once, and read when somebody asks, at the moment
 * of the asking; then all streams are given the same message. Too many changes, or changes that may have been missed,
 * become a reset.
 */
export class ListTopic implements ListWatcher {
  /** Resolves when changes are heard. */
  readonly ready: Promise<void>;
  readonly #feeds: Feeds;
  readonly #feed: TenantFeed;
  readonly #options: ListTopicOptions;
  readonly #readers = new Set<ListReader>();
  /** Job → the newest version heard of. */
  #changed = new Map<string, number>();
  #reset = false;
  #failure: { error: unknown } | undefined;
  #reading: Promise<void> | undefined;
  /** By `performance.now()`. */
  #readableAt = 0;
  readonly #stopped = new AbortController();

  constructor(feeds: Feeds, options: ListTopicOptions) {
    this.#feeds = feeds;
    this.#options = options;
    this.#feed = feeds.join(options.tenant, this);
    this.ready = this.#feed.ready;
    this.ready.catch((error) => {
      this.#failure = { error };
    });
  }

  /** Whether it has ended with an error; who comes later needs another. */
  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Whether there is something that its readers were not given yet. */
  get hasNews(): boolean {
    return this.#reset || this.#changed.size > 0 || this.#reading !== undefined || this.failed;
  }

  add(reader: ListReader): void {
    this.#readers.add(reader);
  }

  /** Returns whether somebody is left; with the last one it ends. */
  remove(reader: ListReader): boolean {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return true;
    this.#stopped.abort();
    this.#changed.clear();
    this.#feeds.leave(this.#feed, this);
    return false;
  }

  onChanges(changes: readonly JobChange[]): void {
    try {
      for (const change of changes) this.#note(change);
    } catch (error) {
      this.#failure = { error };
    }
    this.#tell();
  }

  reset(): void {
    this.#reset = true;
    this.#changed.clear();
    this.#tell();
  }

  /** Gives all readers what has changed; those who ask meanwhile share it. @throws what the filter threw */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  #tell(): void {
    if (this.hasNews) for (const reader of this.#readers) reader.onNews();
  }

  #note(change: JobChange): void {
    const { filter, maxChanged } = this.#options;
    // A reset that is still to come covers it.
    if (this.#reset || filter.change?.(change) === false || !this.#matchesState(change)) return;
    const known = this.#changed.get(change.jobId);
    if (known === undefined && this.#changed.size >= maxChanged) {
      this.#reset = true;
      this.#changed.clear();
    } else {
      this.#changed.set(change.jobId, Math.max(change.version, known ?? 0));
    }
  }

  #matchesState({ from, state }: JobChange): boolean {
    const { state: matches } = this.#options.filter;
    return !matches || matches(state) || (from !== null && matches(from));
  }

  async #read(): Promise<void> {
    const waitMs = this.#readableAt - performance.now();
    const { signal } = this.#stopped;
    if (waitMs > 0) await sleep(waitMs, undefined, { signal, ref: false }).catch(() => {});
    if (this.#failure) throw this.#failure.error;
    if (signal.aborted) return;
    this.#readableAt = performance.now() + this.#options.readEveryMs;
    if (this.#reset) {
      this.#reset = false;
      return this.#send({ jobs: [], reset: true });
    }
    const wanted = [...this.#changed];
    this.#changed.clear();
    try {
      await this.#sendJobs(wanted);
    } catch (error) {
      if (!(error instanceof Unavailable)) {
        this.#failure = { error };
        throw error;
      }
      this.#readableAt = performance.now() + AWAY_MS;
      this.reset();
    }
  }

  async #sendJobs(wanted: readonly (readonly [string, number])[]): Promise<void> {
    const { tenant, filter } = this.#options;
    const rows = await Promise.all(
      wanted.map(([jobId, version]) => this.#feeds.readers.rowAtLeast({ tenant, jobId }, version)),
    );
    // A job that is gone cannot be delivered, and must not stay in the list.
    if (rows.includes(null)) this.reset();
    const jobs = rows.filter((row): row is JobRow => row !== null && (filter.row?.(row) ?? true));
    if (jobs.length > 0) this.#send({ jobs, reset: false });
  }

  #send(message: JobsChanged): void {
    // Those to whom the same is pending are given the same again.
    const merged = new Map<JobsChanged, JobsChanged>();
    for (const reader of this.#readers) {
      const { pending } = reader;
      if (pending && !merged.has(pending)) merged.set(pending, both(pending, message, this.#options.maxChanged));
      reader.onMessage((pending && merged.get(pending)) ?? message);
    }
  }
}

/** The newest of each job. What has to be read again covers whatever came before it is. */
function both(earlier: JobsChanged, later: JobsChanged, maxChanged: number): JobsChanged {
  const reset: JobsChanged = { jobs: [], reset: true };
  if (earlier.reset || later.reset) return reset;
  const jobs = new Map<string, JobRow>(earlier.jobs.map((job) => [job.id, job]));
  for (const job of later.jobs) if (job.version >= (jobs.get(job.id)?.version ?? 0)) jobs.set(job.id, job);
  return jobs.size > maxChanged ? reset : { jobs: [...jobs.values()], reset: false };
}
