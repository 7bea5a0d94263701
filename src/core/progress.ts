import type { JsonValue } from './json.ts';

/** What a handler reports. Every field is optional; what is left out keeps its last value within the stage. */
export interface ProgressReport<Stage extends string = string> {
  stage?: Stage;
  current?: number;
  total?: number;
  unit?: string;
  message?: string;
  /** Whatever else is to be shown, at most 16 kB as JSON. Latest value wins. */
  data?: JsonValue;
}

/** The gauge as stored with the job. */
export interface ProgressState {
  stage: string | null;
  stageIndex: number | null;
  stageCount: number | null;
  nextStage: string | null;
  current: number | null;
  total: number | null;
  unit: string | null;
  message: string | null;
  data: JsonValue;
  /** Units per second over the recent past, null before two reports. */
  ratePerSecond: number | null;
  /** RFC 3339: when the handler reported it, by the worker's clock. */
  updatedAt: string;
}

/** Largest `data` of a progress report, in bytes of JSON. */
export const MAX_PROGRESS_DATA = 16 * 1024;
/** Longest `stage`, `unit` and `message`; longer ones are cut. */
export const MAX_PROGRESS_TEXT = { stage: 100, unit: 40, message: 500 } as const;

/** 0…1 when the total is known, else null. */
export function progressFraction(p: ProgressState): number | null {
  if (p.current === null || p.total === null || p.total <= 0) return null;
  return Math.min(1, Math.max(0, p.current / p.total));
}

/** Seconds until `current` reaches `total` at the measured rate; null when unknown. */
export function progressEta(p: ProgressState): number | null {
  if (p.current === null || p.total === null || p.ratePerSecond === null || p.ratePerSecond <= 0) return null;
  return Math.max(0, p.total - p.current) / p.ratePerSecond;
}
