import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidId } from '../../src/core/errors.ts';
import { ID_PREFIXES, type IdKind, newUuid, parseAnyId, parseId, publicId } from '../../src/core/ids.ts';

const kinds = fc.constantFrom(...(Object.keys(ID_PREFIXES) as IdKind[]));

describe('ids', () => {
  test('a public id gives back the stored id it was made from', () => {
    fc.assert(
      fc.property(kinds, fc.uuid(), (kind, uuid) => {
        const id = publicId(kind, uuid);
        expect(id).toMatch(/^[a-z]{3}_[0-7][0-9a-z]{25}$/);
        expect(parseAnyId(id)).toEqual({ kind, uuid });
        expect(parseId(kind, id)).toBe(uuid);
      }),
    );
  });

  test('ids of one process sort in the order they were made, in both forms', () => {
    const uuids = Array.from({ length: 5_000 }, newUuid);
    expect(uuids).toEqual([...uuids].sort());
    const ids = uuids.map((u) => publicId('Job', u));
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(uuids.length);
  });

  test('an id of another kind is refused, and the rule is named', () => {
    expect(() => parseId('Job', publicId('Worker', newUuid()))).toThrow(/is not the id of a Job/);
    expect(() => parseId('Approval', publicId('Job', newUuid()))).toThrow(/is not the id of an Approval/);
  });

  test('no text that is not an id is taken for one', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^(job|apr|gra|sch|wrk|que|tsk)_[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$/.test(text));
        expect(() => parseAnyId(text)).toThrow(InvalidId);
      }),
    );
    for (const text of [
      'job_',
      'job_8zzzzzzzzzzzzzzzzzzzzzzzzz',
      'JOB_01h2xcejqtf2nbrexx3vqjhp41',
      'job_01H2XCEJQTF2NBREXX3VQJHP41',
    ]) {
      expect(() => parseAnyId(text), text).toThrow(InvalidId);
    }
  });
});
