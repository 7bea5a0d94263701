/** What subscribers ask for, of both servers. */
export const DOCUMENTS = {
  jobEvents: `subscription ($id: ID!, $after: Int) {
    jobEvents(id: $id, after: $after) {
      type: __typename seq at jobId run attempt state
      ... on CheckpointSaved { key kind }
    }
  }`,
  jobsChanged: `subscription {
    jobsChanged(minInterval: "50ms") { reset jobs { id task title queue priority state tags createdAt } }
  }`,
};

export type LiveField = keyof typeof DOCUMENTS;

/** A job to be followed, and the `seq` behind which: one fact is there already and is sent at once. */
export interface Cursor {
  id: string;
  after: number;
}

export type ToSubscribers =
  /**
   * Opens so many sockets, each with one subscription; the cursors are dealt out in turn. It says `subscribed` when
   * every one of them has got its first message, which is not counted.
   */
  | { kind: 'subscribe'; url: string; field: LiveField; sockets: number; cursors: readonly Cursor[] }
  /** It says `delivered` when so many facts (or jobs of lists) came after this, those of all sockets together. */
  | { kind: 'expect'; deliveries: number }
  /** Closes all sockets; it says `left`. */
  | { kind: 'leave' };

export type FromSubscribers =
  | { kind: 'subscribed' }
  | { kind: 'expecting' }
  /** When the last one came, in nanoseconds of the machine's monotonic clock; delays in milliseconds. */
  | { kind: 'delivered'; last: number; p50: number; p99: number }
  | { kind: 'left' }
  | { kind: 'failed'; message: string };

export type ToBareServer =
  /** Sends so many facts of each of these jobs. */
  | { kind: 'publishEvents'; jobIds: readonly string[]; each: number }
  /** Sends one message to all lists, with so many new jobs. */
  | { kind: 'publishJobs'; count: number };

/** Nanoseconds of the machine's monotonic clock, the same for all processes. Exact for the first hundred days of it. */
export const now = (): number => Number(process.hrtime.bigint());
