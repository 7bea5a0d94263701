import type { JobChange } from '../../core/change.ts';
import type { JobEvent } from '../../core/event.ts';
import type { JobRow } from '../../core/job.ts';
import { isTerminal, type JobState } from '../../core/state.ts';
import type { LiveHead, LiveKey } from '../../db/reads/live.ts';
import type { Readers } from './readers.ts';
import { Ring } from './ring.ts';

/** How far a job has come, as far as is known here. */
export interface Head {
  version: number;
  lastSeq: number;
  state: JobState;
}

/** A stream that follows a topic. */
export interface Watcher {
  readonly wants: 'events' | 'row';
  /** Something may be new. */
  wake(): void;
}

/**
 * One job that streams of this process follow: what the channel said and what was read, once for all of them. The
 * channel is believed where its facts continue what is known without a gap; whatever else it says only means "read".
 */
export class Topic {
  readonly key: LiveKey;
  /** Resolves when the channel delivers, or is down. */
  readonly ready: Promise<void>;
  readonly ring: Ring;
  head: Head | null = null;
  /** The newest row read. Null until then. */
  row: JobRow | null = null;
  /** The job is not there (any more). */
  gone = false;
  /** Its facts were removed; the bare row is still there. */
  pruned = false;
  /** A fact is missing in the store. */
  broken: Error | null = null;
  /** Counts how often the store turned out to be older than what was known: it was restored. */
  rewinds = 0;
  readonly #readers: Readers;
  readonly #onTrouble: (error: unknown) => void;
  readonly #watchers = { events: new Set<Watcher>(), row: new Set<Watcher>() };
  #filling = false;
  #reading = false;
  #readAgain = false;
  #olderReads = 0;

  constructor(
    key: LiveKey,
    options: {
      readers: Readers;
      ringSize: number;
      ready: Promise<void>;
      /** A read failed; a poll will look again. */
      onTrouble(error: unknown): void;
    },
  ) {
    this.key = key;
    this.ready = options.ready;
    this.ring = new Ring(options.ringSize);
    this.#readers = options.readers;
    this.#onTrouble = options.onTrouble;
  }

  add(watcher: Watcher): void {
    this.#watchers[watcher.wants].add(watcher);
  }

  /** Returns whether somebody is left. */
  remove(watcher: Watcher): boolean {
    this.#watchers[watcher.wants].delete(watcher);
    if (this.#watchers.events.size === 0) this.ring.reset(null);
    return this.#watchers.events.size + this.#watchers.row.size > 0;
  }

  /** The newest `seq` known of. */
  get lastSeq(): number {
    return Math.max(this.head?.lastSeq ?? 0, this.ring.end ?? 0);
  }

  /** Whether the run that is known as the newest has ended with its newest fact. */
  get hasEnded(): boolean {
    return this.head !== null && this.head.lastSeq === this.lastSeq && isTerminal(this.head.state);
  }

  /** Reads the job now; all that ask meanwhile share the read. Null when it is not there. */
  async refresh(): Promise<JobRow | null> {
    const before = this.head?.version ?? 0;
    const row = await this.#readers.row(this.key);
    this.#take(row, before);
    return row;
  }

  /** What the channel says. */
  onChange(change: JobChange): void {
    const hasFacts = this.ring.append(change.events ?? []);
    if (this.head === null || change.version > this.head.version) {
      this.head = { version: change.version, lastSeq: change.lastSeq, state: change.state };
      this.#catchUp();
    }
    if (hasFacts) this.#wake('events');
  }

  /** What a poll found; `before` is the version that was known when it began. */
  onHead(head: LiveHead | undefined, before: number): void {
    if (!head) {
      this.gone = true;
      this.wakeAll();
      return;
    }
    if (head.pruned && !this.pruned) {
      this.pruned = true;
      this.wakeAll();
    }
    this.#advance(head, before, false);
    this.#catchUp();
  }

  /** Takes over a page of facts that a stream had to read for itself. */
  offer(page: readonly JobEvent[]): void {
    if (this.ring.append(page)) this.#wake('events');
    this.ring.prepend(page);
  }

  /** Wakes every stream: what failed before may work now. */
  wakeAll(): void {
    this.#wake('events');
    this.#wake('row');
  }

  #take(row: JobRow | null, before: number, trust = false): void {
    if (!row) {
      this.gone = true;
    } else {
      if (row.prunedAt !== null) this.pruned = true;
      this.#advance(row, before, trust);
      if (!this.row || row.version > this.row.version) this.row = row;
      if (this.ring.end === null && this.#watchers.events.size > 0) this.ring.reset(row.lastSeq);
      if (this.#isBehind()) void this.#fill();
    }
    this.wakeAll();
  }

  /**
   * Takes over what was read. An older version than was known before the read began, twice in a row, means that the
   * store was restored from a copy (or that the channel carried nonsense): then the store is right. With `trust` once
   * is enough.
   */
  #advance(read: Head, before: number, trust: boolean): void {
    const known = this.head;
    if (known === null || read.version >= known.version) {
      this.head = { version: read.version, lastSeq: read.lastSeq, state: read.state };
      this.#olderReads = 0;
    } else if (trust || (before >= known.version && ++this.#olderReads >= 2)) {
      this.#rewind(read);
    }
  }

  #rewind(read: Head): void {
    this.head = { version: read.version, lastSeq: read.lastSeq, state: read.state };
    this.#olderReads = 0;
    this.rewinds++;
    this.row = null;
    this.#readers.forget(this.key);
    if (this.ring.end !== null) this.ring.reset(read.lastSeq);
    this.wakeAll();
  }

  /** Starts whatever reads are needed to have what `head` speaks of. */
  #catchUp(): void {
    if (this.#isBehind()) void this.#fill();
    const { head, row } = this;
    if (head !== null && this.#watchers.row.size > 0 && (row?.version ?? 0) < head.version) void this.#readRow();
  }

  /** One read at a time; what is asked for meanwhile becomes one more. */
  async #readRow(): Promise<void> {
    this.#readAgain = true;
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#readAgain && this.#watchers.row.size > 0 && !this.gone) {
        this.#readAgain = false;
        const before = this.head?.version ?? 0;
        this.#take(await this.#readers.rowAtLeast(this.key, before), before);
      }
    } catch (error) {
      this.#onTrouble(error);
    } finally {
      this.#reading = false;
    }
  }

  /** Reads the facts between the ring's end and the newest known of. */
  async #fill(): Promise<void> {
    if (this.#filling) return;
    this.#filling = true;
    try {
      let doubt = false;
      while (this.#isBehind()) {
        if (doubt || this.#missing > this.ring.capacity) {
          // There was less than the channel said, or it speaks of much: how far is the job really?
          if (!(await this.#verify()) || !this.#isBehind()) return;
          // Streams read by themselves what the ring cannot hold.
          if (this.#missing > this.ring.capacity) return this.ring.reset(this.lastSeq);
        }
        const end = this.ring.end ?? 0;
        const page = await this.#readers.events({ ...this.key, after: end });
        if (this.ring.append(page) || this.ring.end !== end) {
          doubt = false;
          this.#wake('events');
        } else if (!doubt) {
          doubt = true;
        } else {
          this.broken = new Error(`event ${end + 1} of job ${this.key.jobId} is missing`);
          return;
        }
      }
    } catch (error) {
      this.#onTrouble(error);
    } finally {
      this.#filling = false;
      this.#wake('events');
    }
  }

  get #missing(): number {
    return this.lastSeq - (this.ring.end ?? 0);
  }

  #isBehind(): boolean {
    return (
      this.head !== null && this.ring.end !== null && this.ring.end < this.head.lastSeq && !this.gone && !this.pruned
    );
  }

  /** Takes over how far the job is from the store, whatever was known. False when its facts are gone. */
  async #verify(): Promise<boolean> {
    const known = this.head;
    const row = await this.#readers.row(this.key);
    this.#take(row, known?.version ?? 0, this.head === known);
    return row !== null && row.prunedAt === null;
  }

  #wake(which: Watcher['wants']): void {
    for (const watcher of this.#watchers[which]) watcher.wake();
  }
}
