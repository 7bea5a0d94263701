import type { RawOptions, RawResult } from './raw.ts';

/** What the embedded database's thread is started with. */
export interface ThreadStart {
  /** A directory, or `memory://`. */
  dataDir: string;
  /** A copy of a fresh database to start from; starting without costs seconds. */
  template?: Blob;
}

export type ThreadRequest =
  | ({ id: number; op: 'run'; text: string; params: readonly unknown[] } & RawOptions)
  | { id: number; op: 'dump' }
  | { id: number; op: 'close' };

export interface ThreadResult extends RawResult {
  /** SELECT, INSERT, COMMIT, … of the last statement. */
  command: string | undefined;
}

/** An error's own fields: an instance does not keep them on its way between threads. */
export type ThreadError = { name: string; message: string; stack?: string } & Record<string, unknown>;

export type ThreadReply =
  | { id: number; ok: ThreadResult | Blob | undefined }
  | { id: number; error: ThreadError }
  /** The engine itself broke; no request after this will be answered. */
  | { fatal: ThreadError };
