/**
 * The Postgres literal of a text array, to be cast where it is used: `$1::text[]`. A list travels as one parameter, so
 * the statement's text stays constant and one prepared statement serves lists of every length.
 */
export function pgTextArray(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join(',')}}`;
}

/** The same for numbers, booleans and texts without a special character (ids): `$1::int[]`, `$1::uuid[]`. */
export function pgArray(values: readonly (number | boolean | string | null)[]): string {
  return `{${values.map(element).join(',')}}`;
}

function element(value: number | boolean | string | null): string {
  if (value === null) return 'NULL';
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (typeof value === 'string') return PLAIN.test(value) ? value : quoted(value);
  return Object.is(value, -0) ? '-0' : String(value);
}

/**
 * A column for `unnest` of several arrays, which pads the shorter ones with nulls: one without any value is sent empty.
 * Another column must have a value in every row.
 */
export function textColumn(values: readonly (string | null)[]): string {
  return values.every(isNull) ? '{}' : pgTextArray(values);
}

/** The same for what `pgArray` takes. */
export function column(values: readonly (number | boolean | string | null)[]): string {
  return values.every(isNull) ? '{}' : pgArray(values);
}

const isNull = (value: unknown) => value === null;

/**
 * `column = value` that only an index can answer, probed for one `value` after the other; where an UPDATE joins a list. With a
 * plain equality a plan that was made while the table was small hashes or merges the list with the whole of it, and is kept.
 */
export function probes(column: string, value: string): string {
  return `${column} = any(array[${value}])`;
}

/** No JSON text holds it as such: JSON escapes control characters. */
const SEPARATOR = '\u001e';

/** JSON texts (null: none) as one text, to be taken apart by `jsonColumnSql`: a quoted array would cost each of them an escaping. */
export function jsonColumn(texts: readonly (string | null)[]): string {
  return texts.every(isNull) ? '' : texts.map((text) => text ?? '').join(SEPARATOR);
}

/** The SQL that makes a text array of `jsonColumn`; a column of `unnest` like the others. */
export function jsonColumnSql(param: string): string {
  return `string_to_array(${param}::text, chr(30), '')`;
}

// An element that reads the same with and without quotes. NULL of any case is a null when it is not quoted.
const PLAIN = /^(?!null$)[\w.:+-]+$/i;

function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** An element of an array as Postgres prints it: its text, null, or an array in an array. */
export type PgArrayItem = string | null | PgArrayItem[];

/**
 * Reads an array as Postgres prints it. Drivers have readers of their own, but postgres.js reads NULL as a text, and
 * Drizzle loses backslashes besides.
 */
export function parsePgArray(text: string): PgArrayItem[] {
  if (text === '{}') return [];
  // Bounds other than the usual 1 are printed first: [0:2]={a,b,c}.
  let at = text.startsWith('[') ? text.indexOf('=') + 1 : 0;

  function list(): PgArrayItem[] {
    const items: PgArrayItem[] = [];
    at++;
    while (at < text.length && text[at] !== '}') {
      if (text[at] === '{') items.push(list());
      else if (text[at] === '"') items.push(quotedItem());
      else items.push(plainItem());
      if (text[at] === ',') at++;
    }
    at++;
    return items;
  }

  function quotedItem(): string {
    let item = '';
    for (at++; text[at] !== '"' && at < text.length; at++) {
      if (text[at] === '\\') at++;
      item += text[at];
    }
    at++;
    return item;
  }

  function plainItem(): string | null {
    const from = at;
    while (at < text.length && text[at] !== ',' && text[at] !== '}') at++;
    const item = text.slice(from, at);
    return item === 'NULL' ? null : item;
  }

  return list();
}
