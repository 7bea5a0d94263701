import { type JsonValue, jsonBytes, MAX_JSON_DEPTH, memberPath } from '../core/json.ts';

/** A value as JSON text, or the reason why it has none. `message` names the place: `result.rows[3].at is a Map`. */
export type JsonText = { ok: true; text: string } | { ok: false; problem: 'not-json' | 'too-large'; message: string };

class Problem extends Error {
  readonly problem: 'not-json' | 'too-large';

  constructor(problem: 'not-json' | 'too-large', message: string) {
    super(message);
    this.problem = problem;
  }
}

/**
 * The JSON text of what a handler gave, refused where JSON.stringify would silently lose something: Map, Set, BigInt,
 * function, symbol, NaN, undefined in a list, class instances, what refers to itself. An object with `toJSON` (a Date)
 * is its JSON form; an undefined member is left out; `undefined` itself is null. Never throws, whatever getters and
 * proxies do, and stops as soon as the text is longer than `maxBytes`.
 * @param name what the value is called in messages: `result`
 */
export function toJsonText(value: unknown, name: string, maxBytes: number): JsonText {
  try {
    const text = value === undefined ? 'null' : new Writer(maxBytes, name).write(value);
    const bytes = jsonBytes(text);
    if (bytes > maxBytes)
      throw new Problem('too-large', `${name} has ${bytes} bytes as JSON; the limit is ${maxBytes}`);
    return { ok: true, text };
  } catch (error) {
    if (error instanceof Problem) return { ok: false, problem: error.problem, message: error.message };
    return { ok: false, problem: 'not-json', message: `${name} could not be read: ${describe(error)}` };
  }
}

/** The value that `text` stands for: what a later attempt will get back. */
export function fromJsonText(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}

/** One pass over the value: a second one could meet other values behind the same getters. */
class Writer {
  readonly #maxBytes: number;
  readonly #name: string;
  readonly #open = new Set<object>();
  readonly #path: (string | number)[] = [];
  #text = '';

  constructor(maxBytes: number, name: string) {
    this.#maxBytes = maxBytes;
    this.#name = name;
  }

  write(value: unknown): string {
    this.#value(value, '');
    return this.#text;
  }

  #add(text: string): void {
    // UTF-16 units are never more than UTF-8 bytes: too long already, however it is counted.
    if (this.#text.length + text.length > this.#maxBytes) {
      throw new Problem('too-large', `${this.#name} is larger than ${this.#maxBytes} bytes as JSON`);
    }
    this.#text += text;
  }

  #refuse(what: string): never {
    const path = this.#path.reduce<string>(memberPath, this.#name);
    throw new Problem('not-json', `${path.length > 300 ? `${path.slice(0, 300)}…` : path} ${what}`);
  }

  #value(given: unknown, key: string | number): void {
    const value = jsonForm(given, String(key));
    if (typeof value === 'object' && value !== null) this.#container(value);
    else this.#add(this.#scalar(value));
  }

  #scalar(value: unknown): string {
    if (value === null || typeof value === 'boolean') return String(value);
    // Looked at before its JSON is made: it may be hundreds of megabytes long.
    if (typeof value === 'string') return value.length > this.#maxBytes ? value : JSON.stringify(value);
    if (typeof value !== 'number') return this.#refuse(value === undefined ? 'is undefined' : `is a ${typeof value}`);
    return Number.isFinite(value) ? JSON.stringify(value) : this.#refuse(`is ${value}`);
  }

  #container(value: object): void {
    if (this.#path.length >= MAX_JSON_DEPTH) this.#refuse(`is nested deeper than ${MAX_JSON_DEPTH} levels`);
    if (this.#open.has(value)) this.#refuse('refers to itself');
    this.#open.add(value);
    if (Array.isArray(value)) this.#list(value);
    else this.#members(value);
    this.#open.delete(value);
  }

  #list(list: readonly unknown[]): void {
    this.#add('[');
    for (let i = 0; i < list.length; i++) {
      if (i > 0) this.#add(',');
      this.#path.push(i);
      this.#value(list[i], i);
      this.#path.pop();
    }
    this.#add(']');
  }

  #members(object: object): void {
    const proto = Object.getPrototypeOf(object) as object | null;
    // One level above null is a plain object, of this realm or another.
    if (proto !== null && Object.getPrototypeOf(proto) !== null)
      this.#refuse(`is a ${className(object)}, not a plain object`);
    this.#add('{');
    let first = true;
    for (const key of Object.keys(object)) {
      const member = (object as Record<string, unknown>)[key];
      if (member === undefined) continue;
      this.#add(`${first ? '' : ','}${JSON.stringify(key)}:`);
      first = false;
      this.#path.push(key);
      this.#value(member, key);
      this.#path.pop();
    }
    this.#add('}');
  }
}

function jsonForm(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const toJson = (value as { toJSON?: unknown }).toJSON;
  return typeof toJson === 'function' ? (toJson.call(value, key) as unknown) : value;
}

function className(object: object): string {
  const name: unknown = object.constructor?.name;
  return typeof name === 'string' && name !== '' ? name.slice(0, 80) : 'class instance';
}

function describe(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message).slice(0, 300) : typeof error;
  } catch {
    return 'an error that cannot be read';
  }
}
