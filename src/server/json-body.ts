import { parse } from 'lossless-json';
import { memberPath } from '../core/json.ts';
import { keepsItsDigits } from '../schema/scalar-values.ts';

/** An integer of a JSON text that a double cannot hold, with its place. */
export interface UnsafeInteger {
  path: string;
  text: string;
}

class Unsafe {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Fewer digits than this always fit. */
const LONG_NUMBER = /\d{16}/;

/**
 * The first integer that `JSON.parse` would change without a word, or null. Almost every text is passed over by its
 * look; only one with a long run of digits is read number by number.
 */
export function findUnsafeInteger(text: string): UnsafeInteger | null {
  if (!LONG_NUMBER.test(text)) return null;
  let found = false;
  const value = parse(text, null, {
    parseNumber: (number) => {
      if (/[.eE]/.test(number) || keepsItsDigits(number)) return 0;
      found = true;
      return new Unsafe(number);
    },
    // JSON.parse takes the last one; both were looked at.
    onDuplicateKey: ({ oldValue, newValue }) => (oldValue instanceof Unsafe ? oldValue : newValue),
  });
  return found ? locate(value, '') : null;
}

function locate(value: unknown, path: string): UnsafeInteger | null {
  if (value instanceof Unsafe) return { path, text: value.text };
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, child] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : memberPath(path, key);
    const found = locate(child, at);
    if (found) return found;
  }
  return null;
}
