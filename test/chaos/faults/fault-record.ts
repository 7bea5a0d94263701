import type { PlannedFault } from '../schedule.ts';

/** What came of a planned fault. */
export interface FaultRecord {
  readonly planned: PlannedFault;
  /** By the clock of this machine, in milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Something felt it: a fault that nobody felt proves nothing. */
  readonly observed: boolean;
  /** What was seen. */
  readonly detail: string;
  /** What should not have come of it. */
  readonly problem?: string;
}

export type Seen = Pick<FaultRecord, 'observed' | 'detail' | 'problem'>;
