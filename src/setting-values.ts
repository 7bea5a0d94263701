import bytes from 'bytes';
import { z } from 'zod';
import { DURATION_RULE, parseDuration } from './core/duration.ts';

/** Schemas of setting values: text in, number or text out; their messages state the rule. */

/** Says what is wrong with a value from inside a transform. */
export function fault(ctx: z.RefinementCtx, message: string): never {
  ctx.addIssue({ code: 'custom', message });
  return z.NEVER;
}

/** Milliseconds of a duration within bounds. */
export function duration({ min, max }: { min: string; max?: string }) {
  const [least, most] = [
    parseDuration(min) ?? 0,
    max === undefined ? Number.POSITIVE_INFINITY : (parseDuration(max) ?? 0),
  ];
  const range = [
    least > 1 ? ` of ${min} or more` : least === 1 ? ' longer than 0' : '',
    max ? `, at most ${max}` : '',
  ].join('');
  return z.string().transform((text, ctx) => {
    const ms = parseDuration(text);
    if (ms === null || ms < least || ms > most) return fault(ctx, `${DURATION_RULE}${range}`);
    return ms;
  });
}

/** Bytes of a size. */
export function size() {
  const rule = 'must be a size such as "512kb" or "1mb", from 1b to 256mb';
  return z.string().transform((text, ctx) => {
    // `bytes` reads a number at the front of anything, so the form is checked before.
    const value = /^\d+(\.\d+)?(b|kb|mb)$/i.test(text) ? bytes.parse(text) : null;
    if (value === null || value < 1 || value > 256 * 1024 * 1024) return fault(ctx, rule);
    return value;
  });
}

/** A whole number within bounds. */
export function integer(min: number, max: number) {
  return z.string().transform((text, ctx) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) return fault(ctx, `must be a whole number from ${min} to ${max}`);
    return value;
  });
}

/** A URL. Only the scheme is checked: drivers take forms (several hosts, sockets) that the URL parser does not know. */
export function url(schemes: readonly string[]) {
  const pattern = new RegExp(`^(${schemes.join('|')})://\\S+$`);
  return z.string().regex(pattern, `must be a URL that begins with ${schemes.map((s) => `${s}://`).join(' or ')}`);
}

/** A text that can be a part of a header. */
export function visible() {
  return z.string().regex(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces');
}

/** Levenshtein distance of two names. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** A value as messages show it: without user and password of a URL. */
export function shown(value: string): string {
  return JSON.stringify(value.replace(/^(\w+:\/\/)?.*@/, '$1…@'));
}

/** Warnings about names that look like settings and are none, with the nearest known name. */
export function unknownNames(names: readonly string[], known: readonly string[]): string[] {
  return names
    .filter((name) => name.startsWith('WAYMARK_') && !known.includes(name))
    .sort()
    .map((name) => {
      const [best] = known.map((k) => ({ k, d: editDistance(name, k) })).sort((a, b) => a.d - b.d);
      const hint = best && best.d <= 4 ? `; did you mean ${best.k}?` : '';
      return `${name} is not a setting of Waymark and does nothing${hint}`;
    });
}
