import { fromString, fromUUID, toUUID } from 'typeid-js';
import { V7Generator } from 'uuidv7';
import { InvalidId } from './errors.ts';

/**
 * Ids are UUIDv7 (RFC 9562, from a generator that is monotonic within a process) in the store and
 * TypeIDs (https://github.com/jetify-com/typeid, prefix + Crockford base32) everywhere a person or client sees them.
 */

/** What an id names → its prefix. */
export const ID_PREFIXES = {
  Job: 'job',
  Approval: 'apr',
  Graph: 'gra',
  Schedule: 'sch',
  Worker: 'wrk',
  Queue: 'que',
  Task: 'tsk',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

const KIND_OF_PREFIX = new Map(Object.entries(ID_PREFIXES).map(([kind, prefix]) => [prefix as string, kind as IdKind]));

/** Random words drawn from the system at once: one call for each id would take longer than all the rest of it. */
const random = new Uint32Array(1_024);
let drawn = random.length;

const generator = new V7Generator({
  nextUint32() {
    if (drawn === random.length) {
      crypto.getRandomValues(random);
      drawn = 0;
    }
    return random[drawn++] as number;
  },
});

/** A new UUIDv7; later calls in this process sort after earlier ones. */
export function newUuid(): string {
  return generator.generate().toString();
}

/** The public form of a stored id: `job_01h2xcejqtf2nbrexx3vqjhp41`. */
export function publicId(kind: IdKind, uuid: string): string {
  return fromUUID(uuid, ID_PREFIXES[kind]);
}

/**
 * The stored form of a public id.
 * @throws InvalidId when it is not an id at all, or names something of another kind.
 */
export function parseId(kind: IdKind, id: string, path?: string): string {
  const parsed = parseAnyId(id, path);
  if (parsed.kind !== kind) {
    const article = /^[AEIOU]/.test(kind) ? 'an' : 'a';
    throw new InvalidId(id, `is not the id of ${article} ${kind} (${ID_PREFIXES[kind]}_…)`, path);
  }
  return parsed.uuid;
}

/**
 * Kind and stored form of any public id.
 * @throws InvalidId when the prefix is unknown or the rest is no TypeID suffix.
 */
export function parseAnyId(id: string, path?: string): { kind: IdKind; uuid: string } {
  const kind = KIND_OF_PREFIX.get(id.slice(0, Math.max(0, id.lastIndexOf('_'))));
  if (!kind)
    throw new InvalidId(
      id,
      `must begin with one of ${[...KIND_OF_PREFIX.keys()].map((p) => `${p}_`).join(', ')}`,
      path,
    );
  try {
    return { kind, uuid: toUUID(fromString(id)) };
  } catch {
    throw new InvalidId(id, 'is malformed', path);
  }
}
