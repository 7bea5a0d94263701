import type { Sql } from 'postgres';
import type { AnyTask } from '../../../src/core/task.ts';
import type { OpenDatabase } from '../../../src/db/open.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { ClaimedJob } from '../../../src/engine/types.ts';
import type { Waymark } from '../../../src/waymark.ts';

/** One of the processes of a storm: it has connections of its own. */
export interface StormProcess {
  readonly engine: Engine;
  readonly adopt: OpenDatabase['adopt'];
  /** Whose jobs it holds. Another one when the old one is left to be rescued. */
  worker: string;
  held: ClaimedJob[];
}

/** What all processes share. */
export interface Sky {
  readonly random: () => number;
  /** A caller's own connections. */
  readonly sql: Sql;
  /** A back end that submits inside its own transactions. */
  readonly waymark: Waymark;
  readonly task: AnyTask;
  /** Jobs that were submitted lately, to be steered. */
  readonly recent: string[];
}

export type Action = (p: StormProcess, sky: Sky) => Promise<unknown>;

/** What a caller's transaction throws to be rolled back. */
export class RolledBack extends Error {}

export const int = (sky: Sky, below: number): number => Math.floor(sky.random() * below);
export const pick = <T>(sky: Sky, list: readonly T[]): T => list[int(sky, list.length)] as T;
export const shuffled = <T>(sky: Sky, list: readonly T[]): T[] =>
  list
    .map((value) => ({ value, at: sky.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);

/** Waits for all, so that no fault hides behind the first refusal. @throws AggregateError of all that failed */
export async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  const errors = settled.flatMap((s) => (s.status === 'rejected' ? [s.reason] : []));
  if (errors.length > 0) throw new AggregateError(errors);
  return settled.map((s) => (s as PromiseFulfilledResult<T>).value);
}
