import type { JobRow } from '../core/job.ts';
import type { SchemaContext } from './context.ts';

/** The jobs that one kind of waiting is about, for `WaitingOn.jobs` and `jobCount`. */
export interface WaitedFor {
  /** At most `first` of them, in an order that stays. */
  jobs(job: JobRow, first: number, context: SchemaContext): Promise<readonly JobRow[]>;
  /** How many there are in all, of the caller's tenant. */
  count(job: JobRow, context: SchemaContext): Promise<number>;
}
