import { type JsonValue, jsonBytes, storableText } from '../core/json.ts';
import { MAX_PROGRESS_DATA, MAX_PROGRESS_TEXT, type ProgressReport, type ProgressState } from '../core/progress.ts';

/** The rate forgets what is older than about this. */
const RATE_WINDOW_MS = 30_000;
/** Reports closer together than this are one sample of the rate. */
const RATE_SAMPLE_MS = 200;

/** A gauge inside an attempt: ProgressState before it is given out, with what the rate needs. */
export interface Gauge {
  readonly stage: string | null;
  readonly stageIndex: number | null;
  /** The furthest declared stage so far, -1 before the first. */
  readonly reached: number;
  readonly current: number | null;
  readonly total: number | null;
  readonly unit: string | null;
  readonly message: string | null;
  /** JSON text, so that what the handler does to its object later changes nothing. */
  readonly data: string | null;
  readonly ratePerSecond: number | null;
  /** Where the current sample of the rate began. */
  readonly sampleAt: number;
  readonly sampleCurrent: number | null;
  /** Milliseconds since 1970. */
  readonly reportedAt: number;
}

export const EMPTY_GAUGE: Gauge = {
  stage: null,
  stageIndex: null,
  reached: -1,
  current: null,
  total: null,
  unit: null,
  message: null,
  data: null,
  ratePerSecond: null,
  sampleAt: 0,
  sampleCurrent: null,
  reportedAt: 0,
};

/** What became of a report. `droppedData`: bytes of a `data` that was too large, or -1 when it was no JSON. */
export interface Merged {
  gauge: Gauge;
  droppedData?: number;
}

/**
 * The gauge after a report. Moves forward only: a stage that stands earlier in `stages` is passed over with all that
 * was said about it, a lower `current` within a stage is. A new stage begins without current, total, unit and message.
 * Never throws; a report that says nothing new about anything gives the same gauge with a new time.
 * @param now milliseconds since 1970
 */
export function mergeProgress(before: Gauge, report: ProgressReport, stages: readonly string[], now: number): Merged {
  try {
    return merge(before, report, stages, now);
  } catch {
    return { gauge: before };
  }
}

function merge(before: Gauge, report: ProgressReport, stages: readonly string[], now: number): Merged {
  // Mostly the stage is the same as before.
  const said = typeof report.stage === 'string' && report.stage !== before.stage ? report.stage : null;
  const index = said === null ? -1 : stages.indexOf(said);
  const stage = said === null ? before.stage : text(said, MAX_PROGRESS_TEXT.stage);
  const stageIndex = said === null ? before.stageIndex : index < 0 ? null : index;
  if (index >= 0 && index < before.reached) return { gauge: before };

  const old = stage === before.stage ? before : EMPTY_GAUGE;
  const current = forward(old.current, count(report.current));
  const data = report.data === undefined ? { text: before.data } : dataText(report.data);
  const gauge: Gauge = {
    stage,
    stageIndex,
    reached: Math.max(before.reached, index),
    current,
    total: count(report.total) ?? old.total,
    unit: text(report.unit, MAX_PROGRESS_TEXT.unit) ?? old.unit,
    message: text(report.message, MAX_PROGRESS_TEXT.message) ?? old.message,
    data: data.dropped === undefined ? data.text : before.data,
    ...rate(old, current, now),
    reportedAt: now,
  };
  return data.dropped === undefined ? { gauge } : { gauge, droppedData: data.dropped };
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

function forward(before: number | null, now: number | null): number | null {
  return now === null || (before !== null && now < before) ? before : now;
}

function text(value: unknown, maxLength: number): string | null {
  if (typeof value !== 'string') return null;
  const asItIs = value.length <= maxLength && value.isWellFormed() && !value.includes('\u0000');
  return asItIs ? value : storableText(value, maxLength);
}

type Rate = Pick<Gauge, 'ratePerSecond' | 'sampleAt' | 'sampleCurrent'>;

/** Exponential moving average: a sample counts the more the longer it took. */
function rate(old: Gauge, current: number | null, now: number): Rate {
  const { ratePerSecond, sampleAt, sampleCurrent } = old;
  if (current === null) return { ratePerSecond, sampleAt, sampleCurrent };
  if (sampleCurrent === null) return { ratePerSecond, sampleAt: now, sampleCurrent: current };
  const elapsed = now - sampleAt;
  if (elapsed < RATE_SAMPLE_MS) {
    // The clock was set back: begin again.
    return elapsed < 0
      ? { ratePerSecond, sampleAt: now, sampleCurrent: current }
      : { ratePerSecond, sampleAt, sampleCurrent };
  }
  const seen = ((current - sampleCurrent) * 1_000) / elapsed;
  const weight = 1 - Math.exp(-elapsed / (RATE_WINDOW_MS / 2));
  const next = ratePerSecond === null ? seen : ratePerSecond + weight * (seen - ratePerSecond);
  return { ratePerSecond: Number.isFinite(next) ? next : null, sampleAt: now, sampleCurrent: current };
}

/** Matches JSON text that may hold an escaped NUL or half of a surrogate pair; readers of the gauge cannot store these. */
const ODD_TEXT = /\\u(?:0000|d[89a-f])/;

function dataText(value: JsonValue): { text: string | null; dropped?: number } {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
    if (json !== undefined && ODD_TEXT.test(json)) json = JSON.stringify(JSON.parse(json), storable);
  } catch {
    return { text: null, dropped: -1 };
  }
  if (json === undefined) return { text: null, dropped: -1 };
  const bytes = json.length > MAX_PROGRESS_DATA ? json.length : jsonBytes(json);
  return bytes > MAX_PROGRESS_DATA ? { text: null, dropped: bytes } : { text: json };
}

function storable(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? storableText(value, MAX_PROGRESS_DATA) : value;
}

/** The gauge as it is stored and shown. */
export function progressState(gauge: Gauge, stages: readonly string[]): ProgressState {
  const { stage, stageIndex, current, total, unit, message, data, ratePerSecond, reportedAt } = gauge;
  return {
    stage,
    stageIndex,
    stageCount: stages.length > 0 ? stages.length : null,
    nextStage: stageIndex === null ? null : (stages[stageIndex + 1] ?? null),
    current,
    total,
    unit,
    message,
    data: data === null ? null : (JSON.parse(data) as JsonValue),
    ratePerSecond,
    updatedAt: new Date(reportedAt).toISOString(),
  };
}
