/** Durations as people write them: `500ms`, `5s`, `10m`, `2h`, `7d`. Inside Waymark they are whole milliseconds. */
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const PATTERN = /^(\d{1,13}(?:\.\d{1,3})?)(ms|s|m|h|d)$/;

/** The longest duration accepted: 100 years. Anything longer is a mistake of unit. */
export const MAX_DURATION_MS = 36_525 * UNITS.d;

export const DURATION_RULE = 'must be a duration such as "500ms", "5s", "10m", "2h" or "7d"';

/** Milliseconds of a duration, or null when it is none (negative, unitless, longer than 100 years). */
export function parseDuration(text: string): number | null {
  const match = PATTERN.exec(text);
  if (!match) return null;
  const ms = Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]);
  return ms <= MAX_DURATION_MS ? ms : null;
}

/**
 * Milliseconds of a duration written in code.
 * @throws TypeError when it is none; `what` names the option.
 */
export function durationMs(value: string | number, what: string): number {
  const ms = typeof value === 'number' ? value : parseDuration(value);
  if (ms === null || !Number.isFinite(ms) || ms < 0 || ms > MAX_DURATION_MS) {
    throw new TypeError(`${what} ${DURATION_RULE}, not ${JSON.stringify(value)}`);
  }
  return Math.round(ms);
}

/** The shortest exact form in one unit: 90_000 → `90s`, 3_600_000 → `1h`. `parseDuration` gives the same number back. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (whole > 0 && whole % UNITS[unit] === 0) return `${whole / UNITS[unit]}${unit}`;
  }
  return `${whole}ms`;
}
