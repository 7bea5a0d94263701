import type { JobErrorData } from './event.ts';
import type { JobState } from './state.ts';

/** How another job stands, as a handler that waits for it is told. Ids in stored form. */
export interface OutcomeRow {
  jobId: string;
  task: string;
  /** Its node in the graph; null outside. */
  name: string | null;
  state: JobState;
  run: number;
  result: unknown;
  error: JobErrorData | null;
  reason: string | null;
}

/** How a job ended. `R` is what its handler returned, in its JSON form. */
export type Outcome<R = unknown> = { jobId: string; task: string } & (
  | { state: 'COMPLETED'; result: R }
  | { state: 'FAILED'; error: JobErrorData }
  | { state: 'CANCELED'; reason: string | null }
);
