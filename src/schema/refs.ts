import type { JobRow, WorkerRow } from '../core/job.ts';
import { builder } from './builder.ts';

/** Types that refer to each other in a ring: their names stand here, their fields in the file of their noun. */
export const Job = builder.objectRef<JobRow>('Job');
export const Worker = builder.objectRef<WorkerRow>('Worker');
