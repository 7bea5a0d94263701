import type { RawColumn } from './raw.ts';
import { type PgArrayItem, parsePgArray } from './sql.ts';

type Element = 'int8' | 'json' | 'number' | 'boolean' | 'text';

/** Oids of pg_type. */
const INT8 = 20;
const JSON_TYPE = 114;
const JSONB = 3802;
/** The element type of the array types whose elements are no plain text. */
const ELEMENTS: ReadonlyMap<number, Element> = new Map<number, Element>([
  [1016, 'int8'],
  ...each([199, 3807], 'json'),
  // int2, int4, oid, float4, float8.
  ...each([1005, 1007, 1028, 1021, 1022], 'number'),
  [1000, 'boolean'],
  // text, char, varchar, name, uuid, numeric, date, time, timestamp (all with and without a zone), interval, inet.
  ...each([1009, 1014, 1015, 1003, 2951, 1231, 1182, 1183, 1270, 1115, 1185, 1187, 1041], 'text'),
]);

type Reader = (text: string) => unknown;

const asIs: Reader = (text) => text;
/** A bigint as number: counts and byte sizes of Waymark stay far below 2^53. */
const toNumber: Reader = Number;
const toBoolean: Reader = (text) => text === 't';
const toJson: Reader = (text) => JSON.parse(text);
/** For a user's own bigint, of whatever size. */
const toSafeInteger: Reader = (text) => {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
};

interface Readers {
  int8: Reader;
  json: Reader;
}

export function isJsonType(type: number): boolean {
  return type === JSON_TYPE || type === JSONB;
}

/** Reads bigint (as number), JSON and arrays in place: what Waymark's own statements are given. */
export function readRows(rows: unknown[], columns: readonly RawColumn[]): void {
  readObjects(rows as Record<string, unknown>[], columns, { int8: toNumber, json: toJson });
}

/** The same for the user's own raw statements: a bigint beyond 2^53 stays exact, as a BigInt. */
export function readUserRows(rows: unknown[], columns: readonly RawColumn[]): void {
  readObjects(rows as Record<string, unknown>[], columns, { int8: toSafeInteger, json: toJson });
}

/** The same for rows that are arrays. JSON of the columns for which `keepsJson` is true stays text. */
export function readUserArrays(
  rows: unknown[][],
  columns: readonly RawColumn[],
  keepsJson: (index: number) => boolean,
): void {
  columns.forEach(({ type }, index) => {
    const reader = readerOf(type, { int8: toSafeInteger, json: keepsJson(index) ? asIs : toJson });
    if (reader !== undefined) for (const row of rows) row[index] = read(row[index], reader);
  });
}

function readObjects(rows: Record<string, unknown>[], columns: readonly RawColumn[], readers: Readers): void {
  for (const column of columns) {
    const reader = readerOf(column.type, readers);
    // Of two columns with one name an object keeps the last; reading it twice would parse a parsed value.
    if (reader === undefined || columns.findLast((c) => c.name === column.name) !== column) continue;
    for (const row of rows) row[column.name] = read(row[column.name], reader);
  }
}

function read(value: unknown, reader: Reader): unknown {
  return typeof value === 'string' ? reader(value) : value;
}

function readerOf(type: number, { int8, json }: Readers): Reader | undefined {
  if (type === INT8) return int8;
  if (isJsonType(type)) return json;
  const element = ELEMENTS.get(type);
  if (element === undefined) return undefined;
  const reader = { int8, json, number: toNumber, boolean: toBoolean, text: asIs }[element];
  return (text) => parsePgArray(text).map((item) => readItem(item, reader));
}

function readItem(item: PgArrayItem, reader: Reader): unknown {
  if (item === null) return null;
  return typeof item === 'string' ? reader(item) : item.map((inner) => readItem(inner, reader));
}

function each(types: readonly number[], element: Element): [number, Element][] {
  return types.map((type) => [type, element]);
}
