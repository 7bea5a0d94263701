import type { ApprovalRow } from '../core/approval.ts';
import type { GraphRow } from '../core/graph.ts';
import type { JobRow, WorkerRow } from '../core/job.ts';
import type { ScheduleRow } from '../core/schedule.ts';
import type { GraphView } from '../engine/live/types.ts';
import { builder } from './builder.ts';

/** Types that refer to each other in a ring: their names stand here, their fields in the file of their noun. */
export const Job = builder.objectRef<JobRow>('Job');
export const Worker = builder.objectRef<WorkerRow>('Worker');
export const Schedule = builder.objectRef<ScheduleRow>('Schedule');
export const Approval = builder.objectRef<ApprovalRow>('Approval');
/** Of a stream, with its nodes as they are; of a query, to be loaded. */
export const Graph = builder.objectRef<GraphRow & Partial<Omit<GraphView, keyof GraphRow>>>('Graph');
