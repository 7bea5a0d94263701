import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LinePlace } from '../../src/worker/line-place.ts';

const at = (ms: number) => new Date(1.7e12 + ms).toISOString().replace('T', ' ').replace('Z', '+00');
const job = (rankMs: number, atMs = 1e9) => ({ rank: at(rankMs), at: at(atMs) });
const BUSY = Array.from({ length: 1_001 }, (_, i) => job(i));

function setUp() {
  let now = 0;
  const place = new LinePlace(() => now);
  const pass = (ms: number) => {
    now += ms;
  };
  return { place, pass };
}

test('a worker that claims little always begins at the head of the line', () => {
  const { place, pass } = setUp();
  for (let i = 0; i < 500; i++) {
    expect(place.next()).toBeNull();
    place.took([job(i), job(i)]);
    pass(61);
    expect(place.headDueAt).toBeNull();
  }
});

test('a busy one begins where its claims have ended, and at the head four times a second', () => {
  const { place, pass } = setUp();
  expect(place.next()).toBeNull();
  place.took(BUSY);
  pass(249);
  expect(place.next()).toBe(at(1_000));
  expect(place.headDueAt).toBe(250);
  place.took([job(2_000)]);
  expect(place.next()).toBe(at(2_000));
  pass(1);
  expect(place.next()).toBeNull();
  expect(place.headDueAt).toBeNull();
  pass(100);
  expect(place.next()).toBe(at(2_000));
});

test('what stands in the future, by a low priority, does not hide what is submitted now', () => {
  const { place } = setUp();
  place.next();
  place.took([...BUSY, job(9e9, 5_000)]);
  expect(place.next()).toBe(at(5_000));
});

test('it is no longer busy a minute after its last job', () => {
  const { place, pass } = setUp();
  place.next();
  place.took(BUSY);
  pass(10_000);
  place.next();
  pass(100);
  expect(place.next()).not.toBeNull();
  pass(60_000);
  expect(place.next()).toBeNull();
  pass(100);
  expect(place.next()).toBeNull();
});

test('whatever is claimed and whenever, no claim begins behind a head that was looked at 250 ms ago or longer', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(1_200), fc.nat(400)), { maxLength: 50 }), (claims) => {
      let now = 0;
      const place = new LinePlace(() => now);
      let head = Number.NEGATIVE_INFINITY;
      for (const [n, ms] of claims) {
        if (place.next() === null) head = now;
        else {
          expect(now - head).toBeLessThan(250);
          expect(place.headDueAt).toBe(head + 250);
        }
        place.took(Array.from({ length: n }, (_, i) => job(now + i)));
        now += ms;
      }
    }),
  );
});
