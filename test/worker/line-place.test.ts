import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LinePlace } from '../../src/worker/line-place.ts';

const job = (place: number) => ({ place });
/** More than by which a worker is busy; the last one stands at 1,000. */
const MANY = Array.from({ length: 1_001 }, (_, i) => job(i));

function setUp() {
  let now = 0;
  const place = new LinePlace(() => now);
  const pass = (ms: number) => {
    now += ms;
  };
  return { place, pass };
}

function busy() {
  const { place, pass } = setUp();
  expect(place.next()).toBeNull();
  place.took(MANY);
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

test('a busy one begins where its last claim has ended, and at the head four times a second', () => {
  const { place, pass } = busy();
  pass(249);
  expect(place.next()).toBe(1_000);
  expect(place.headDueAt).toBe(250);
  place.took([job(2_000), job(1_500)]);
  expect(place.next()).toBe(2_000);
  place.took([]);
  pass(1);
  expect(place.next()).toBeNull();
  place.took([]);
  expect(place.headDueAt).toBeNull();
  pass(100);
  expect(place.next()).toBe(2_000);
});

test('what the head has left is taken by the claims that follow, however old it is', () => {
  const { place, pass } = busy();
  pass(250);
  expect(place.next()).toBeNull();
  place.took([job(10), job(12)]);
  expect(place.next()).toBe(12);
});

test('a look at the head counts when it is answered, and one that failed does not', () => {
  const { place, pass } = busy();
  pass(250);
  expect(place.next()).toBeNull();
  expect(place.next()).toBeNull();
  pass(400);
  place.took([]);
  expect(place.next()).toBe(1_000);
});

test('when something is said to stand ahead the next claim is from the head, and one that is under way does not count', () => {
  const { place, pass } = busy();
  pass(10);
  place.ahead();
  expect(place.next()).toBeNull();
  place.ahead();
  place.took([job(5)]);
  expect(place.next()).toBeNull();
  place.took([job(6)]);
  expect(place.next()).toBe(6);
});

test('it is no longer busy a minute after its last job', () => {
  const { place, pass } = busy();
  pass(10_000);
  expect(place.next()).toBeNull();
  place.took([]);
  pass(100);
  expect(place.next()).not.toBeNull();
  pass(60_000);
  expect(place.next()).toBeNull();
  place.took([]);
  pass(100);
  expect(place.next()).toBeNull();
});

/** A line in order of rank, and a worker who claims from it as often as it may. */
function drain(backlog: number, stream: number, limit: number, everyMs: number): { ms: number; claims: number } {
  let now = 0;
  const place = new LinePlace(() => now);
  const fresh: number[] = [];
  let next = 1e6;
  const arrive = () => {
    for (let i = 0; i < stream; i++) fresh.push(next++);
  };
  // Busy before the old jobs come.
  place.next();
  place.took(Array.from({ length: 2_000 }, () => job(next++)));
  let old = Array.from({ length: backlog }, (_, i) => i + 1);
  let claims = 0;
  for (; old.length > 0; now += everyMs) {
    arrive();
    const from = place.next() ?? 0;
    const line = [...old.filter((rank) => rank >= from), ...fresh.filter((rank) => rank >= from)];
    const taken = new Set(line.slice(0, limit));
    old = old.filter((rank) => !taken.has(rank));
    fresh.splice(0, fresh.length, ...fresh.filter((rank) => !taken.has(rank)));
    place.took([...taken].map(job));
    claims++;
    if (claims > 10_000) throw new Error(`${old.length} old jobs are left`);
  }
  return { ms: now, claims };
}

test('an old backlog that appears before a busy worker is drained at full speed, whatever comes in behind it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 400 }),
      fc.nat(20),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 300 }),
      (backlog, stream, limit, everyMs) => {
        const { claims } = drain(backlog, stream, limit, everyMs);
        // Until the head is looked at, and then each claim takes what it may.
        expect(claims).toBeLessThanOrEqual(Math.ceil(250 / everyMs) + Math.ceil(backlog / limit) + 1);
      },
    ),
  );
});
