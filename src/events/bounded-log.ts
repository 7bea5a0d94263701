import type { Logger } from '../core/log.ts';

/** Writes a line, or holds it back. `kind` names what is counted together. */
export type BoundedLog = (level: 'info' | 'warn' | 'error', kind: string, data: object, message: string) => void;

/**
 * A log that a fault cannot flood: of each kind the first line is written at once, then at most one per `everyMs`
 * (default 5 s), with the number of lines that were held back as `suppressed`. Kinds are few and constant.
 */
export function boundedLog(log: Logger, everyMs = 5_000): BoundedLog {
  const kinds = new Map<string, { nextAt: number; suppressed: number }>();
  return (level, kind, data, message) => {
    const now = performance.now();
    const seen = kinds.get(kind);
    if (seen && now < seen.nextAt) {
      seen.suppressed++;
      return;
    }
    const suppressed = seen?.suppressed ?? 0;
    kinds.set(kind, { nextAt: now + everyMs, suppressed: 0 });
    log[level](suppressed > 0 ? { ...data, suppressed } : data, message);
  };
}
