import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_PROGRESS_DATA, MAX_PROGRESS_TEXT, type ProgressReport } from '../../src/core/progress.ts';
import { EMPTY_GAUGE, type Gauge, mergeProgress, progressState } from '../../src/worker/progress.ts';

const STAGES = ['read', 'check', 'write'];
const merge = (gauge: Gauge, report: object, now = 0, stages = STAGES) =>
  mergeProgress(gauge, report as ProgressReport, stages, now).gauge;

const reports = fc.array(
  fc.record(
    {
      stage: fc.constantFrom(...STAGES, 'unlisted'),
      current: fc.oneof(fc.nat(100), fc.double()),
      total: fc.oneof(fc.nat(100), fc.double()),
      unit: fc.string({ maxLength: 60 }),
      message: fc.string({ unit: 'binary', maxLength: 600 }),
      data: fc.anything() as fc.Arbitrary<never>,
    },
    { requiredKeys: [] },
  ),
  { maxLength: 30 },
);

test('a gauge never goes back: not to an earlier stage, and not within one', () => {
  fc.assert(
    fc.property(reports, (list) => {
      let gauge = EMPTY_GAUGE;
      for (const [i, report] of list.entries()) {
        const next = merge(gauge, report, i * 100);
        expect(next.reached).toBeGreaterThanOrEqual(gauge.reached);
        if (next.stageIndex !== null) expect(next.stageIndex).toBe(next.reached);
        if (next.stage === gauge.stage && gauge.current !== null) {
          expect(next.current).toBeGreaterThanOrEqual(gauge.current);
        }
        gauge = next;
      }
      const state = progressState(gauge, STAGES);
      expect(state.stage?.length ?? 0).toBeLessThanOrEqual(MAX_PROGRESS_TEXT.stage);
      expect(state.message?.length ?? 0).toBeLessThanOrEqual(MAX_PROGRESS_TEXT.message);
      expect(state.unit?.length ?? 0).toBeLessThanOrEqual(MAX_PROGRESS_TEXT.unit);
      expect(state.ratePerSecond ?? 0).toBeGreaterThanOrEqual(0);
      expect(Number.isFinite(state.ratePerSecond ?? 0)).toBe(true);
      JSON.stringify(state);
    }),
    { numRuns: 1_000 },
  );
});

test('whatever a report holds, nothing is thrown', () => {
  fc.assert(fc.property(fc.anything(), (report) => void merge(EMPTY_GAUGE, Object(report))));
  const throws = {
    get stage(): string {
      throw new Error('no');
    },
  };
  expect(merge(EMPTY_GAUGE, throws)).toBe(EMPTY_GAUGE);
});

test('a new stage begins without current, total, unit and message, unless they are given; data stays', () => {
  const first = merge(EMPTY_GAUGE, { stage: 'read', current: 5, total: 9, unit: 'rows', message: 'm', data: { a: 1 } });
  expect(progressState(merge(first, { stage: 'check', total: 3 }), STAGES)).toMatchObject({
    stage: 'check',
    stageIndex: 1,
    stageCount: 3,
    nextStage: 'write',
    current: null,
    total: 3,
    unit: null,
    message: null,
    data: { a: 1 },
  });
});

test('a report about an earlier stage is passed over as a whole; a lower count within a stage alone is', () => {
  const write = merge(EMPTY_GAUGE, { stage: 'write', current: 2 });
  expect(merge(write, { stage: 'read', current: 50, message: 'late' })).toBe(write);
  expect(merge(merge(write, { stage: 'unlisted' }), { stage: 'check' }).stage).toBe('unlisted');
  expect(merge(write, { current: 1, message: 'new' })).toMatchObject({ current: 2, message: 'new' });
});

test('without declared stages any order goes', () => {
  const b = merge(merge(EMPTY_GAUGE, { stage: 'a' }, 0, []), { stage: 'b' }, 0, []);
  expect(progressState(merge(b, { stage: 'a' }, 0, []), [])).toMatchObject({
    stage: 'a',
    stageIndex: null,
    stageCount: null,
  });
});

test('data beyond its limit, or that is no JSON, is left out and the rest is taken', () => {
  const before = merge(EMPTY_GAUGE, { data: 'kept' });
  const large = mergeProgress(before, { current: 1, data: 'x'.repeat(MAX_PROGRESS_DATA) }, [], 0);
  expect(large).toMatchObject({ gauge: { current: 1, data: '"kept"' }, droppedData: MAX_PROGRESS_DATA + 2 });
  expect(mergeProgress(before, { data: 1n as never }, [], 0)).toMatchObject({
    gauge: { data: '"kept"' },
    droppedData: -1,
  });
  expect(progressState(merge(before, { data: { a: 'x\u0000', b: '\ud800' } }), []).data).toEqual({
    a: 'x\ufffd',
    b: '\ufffd',
  });
});

test('what a handler does to its data afterwards changes nothing', () => {
  const rows = [1];
  const gauge = merge(EMPTY_GAUGE, { data: rows });
  rows.push(2);
  expect(progressState(gauge, []).data).toEqual([1]);
});

test('the rate is unknown before two samples, then follows the recent past', () => {
  let gauge = merge(EMPTY_GAUGE, { current: 0 }, 0);
  expect(gauge.ratePerSecond).toBe(null);
  for (let s = 1; s <= 60; s++) gauge = merge(gauge, { current: s * 10 }, s * 1_000);
  expect(gauge.ratePerSecond).toBeCloseTo(10, 5);
  for (let s = 1; s <= 60; s++) gauge = merge(gauge, { current: 600 + s * 100 }, 60_000 + s * 1_000);
  expect(gauge.ratePerSecond).toBeGreaterThan(95);
  expect(merge(gauge, { stage: 'check', current: 1 }, 200_000).ratePerSecond).toBe(null);
});

test('20,000 reports take less than 50 ms', () => {
  const run = () => {
    let gauge = EMPTY_GAUGE;
    const began = performance.now();
    for (let i = 0; i < 20_000; i++) {
      gauge = mergeProgress(gauge, { stage: 'read', current: i, total: 20_000, message: `row ${i}` }, STAGES, i).gauge;
    }
    return performance.now() - began;
  };
  // The best of a few: the machine may be busy with something else.
  expect(Math.min(...Array.from({ length: 5 }, run))).toBeLessThan(50);
});
