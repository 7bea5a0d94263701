const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Milliseconds of `"500ms"`, `"5s"`, `"10m"`, `"2h"`, `"7d"` or a number. The rules are those of the service; they are
 * repeated here because the client imports none of its code. @throws TypeError
 */
export function durationToMs(value: string | number): number {
  const [, digits, unit] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(String(value)) ?? [];
  const ms = typeof value === 'number' ? value : Number(digits) * (UNITS[unit ?? ''] ?? Number.NaN);
  if (!(ms >= 0))
    throw new TypeError(`a time limit must be milliseconds or a duration such as "30s", not ${JSON.stringify(value)}`);
  // What a timer holds is 24 days; a longer wait is no different to anybody.
  return Math.min(ms, 2 ** 31 - 1);
}
