import { describe, expect, test } from 'vitest';
import { check } from './check/checker.ts';
import type { History } from './check/history.ts';
import { RULES, type Rule } from './check/violation.ts';
import { soundHistory, type Writable } from './sound-history.ts';

type Break = (history: Writable<History>) => unknown;

/** The first of a list that is as described; a test that breaks nothing would prove nothing. */
function first<T>(list: readonly T[], like: Partial<T>): T {
  const found = list.find((item) => Object.entries(like).every(([key, value]) => item[key as keyof T] === value));
  if (!found) throw new Error(`nothing is like ${JSON.stringify(like)}`);
  return found;
}

/** Gives other values to the first of a list that is as described. */
function change<T extends object>(list: readonly T[], like: Partial<T>, values: Partial<T>): void {
  Object.assign(first(list, like), values);
}

const without = <T>(list: T[], like: Partial<T>) => void list.splice(list.indexOf(first(list, like)), 1);

/** One way, or several, to break each rule; exactly that rule has to be named. */
const BROKEN: readonly [Rule, string, Break][] = [
  ['I1', 'an API does not find an accepted id', (h) => h.unresolved.push({ id: 'nap', api: 1 })],
  ['I1', 'a key stands for two jobs', (h) => change(h.jobs, { id: 'nap' }, { key: 'key of steps' })],
  ['I1', 'one key was answered with two ids', (h) => first(h.accepted, { id: 'nap' }).ids.push('echo')],
  ['I2', 'a run has two ends', (h) => change(h.events, { jobId: 'nap', seq: 5 }, { type: 'JobFailed' })],
  [
    'I2',
    'something follows the end of the first run',
    (h) => change(h.events, { jobId: 'secondRun', seq: 6 }, { run: 1 }),
  ],
  ['I3', 'an attempt is missing', (h) => without(h.attempts, { jobId: 'nap' })],
  ['I3', 'an attempt of a finished job is open', (h) => change(h.attempts, { jobId: 'nap' }, { outcome: null })],
  ['I3', 'two attempts overlap', (h) => change(h.attempts, { jobId: 'steps', number: 2 }, { startedAt: 12 })],
  ['I3', 'a failure is not counted', (h) => change(h.jobs, { id: 'steps' }, { failures: 0 })],
  ['I3', 'the budget is overdrawn', (h) => change(h.jobs, { id: 'steps' }, { maxAttempts: 0 })],
  ['I4', 'a finished step is executed again', (h) => change(h.ledger, { attempt: 1, step: 0 }, { attempt: 2 })],
  ['I4', 'a step is executed by an attempt that is not recorded', (h) => change(h.ledger, { step: 1 }, { attempt: 7 })],
  ['I4', 'a step is executed by another process', (h) => change(h.ledger, { step: 1 }, { pid: 7 })],
  ['I4', 'a step is executed twice in an attempt', (h) => h.ledger.push({ ...first(h.ledger, { attempt: 2 }) })],
  ['I4', 'a saved step was never executed', (h) => without(h.ledger, { step: 0 })],
  [
    'I4',
    'a job is done with a step missing',
    (h) => void Object.assign(first(h.accepted, { id: 'steps' }).plan, { input: { n: 3 } }),
  ],
  ['I5', 'a child is missing', (h) => change(h.jobs, { id: 'child 1' }, { parentId: null })],
  [
    'I5',
    'results are in another order',
    (h) => change(h.jobs, { id: 'family' }, { result: { by: 2, texts: ['child 1', 'child 0'] } }),
  ],
  ['I5', 'a dependant started before', (h) => change(h.events, { jobId: 'family', type: 'JobCompleted' }, { at: 20 })],
  ['I6', 'two events have changed places', (h) => change(h.events, { jobId: 'nap', seq: 3 }, { seq: 4 })],
  ['I6', 'an event is missing at the end', (h) => change(h.jobs, { id: 'batches' }, { lastSeq: 5 })],
  ['I6', 'time goes back', (h) => change(h.events, { jobId: 'nap', seq: 4 }, { at: 0 })],
  ['I6', 'the last event is of another state', (h) => change(h.events, { jobId: 'nap', seq: 6 }, { state: 'FAILED' })],
  ['I8', 'the result is of a lost attempt', (h) => change(h.jobs, { id: 'steps' }, { result: { by: 1 } })],
  ['I8', 'the progress is of a lost attempt', (h) => change(h.jobs, { id: 'steps' }, { progressData: { by: 1 } })],
  [
    'I8',
    'a checkpoint has data of another attempt',
    (h) => change(h.checkpoints, { key: 'step 1' }, { data: { by: 1 } }),
  ],
  ['I8', 'a canceled job has a result', (h) => change(h.jobs, { id: 'nap' }, { hasResult: true })],
  ['I9', 'an internal error is told', (h) => change(h.errors, { doing: 'submit' }, { code: 'INTERNAL_SERVER_ERROR' })],
  ['I9', 'the words tell of the inside', (h) => change(h.errors, {}, { message: 'read ECONNRESET 127.0.0.1:5432' })],
  ['I9', 'a process ended by itself', (h) => h.badEnds.push({ service: 'w1', detail: 'ended with 1' })],
  ['I10', 'channels are left over', (h) => change(h.resources, {}, { after: 9 })],
  [
    'I11',
    'too few jobs end as planned',
    (h) => h.accepted.slice(0, 2).map(({ plan }) => Object.assign(plan, { ends: ['FAILED'] })),
  ],
  ['I11', 'a fault was not felt', (h) => change(h.faults, {}, { observed: false })],
  ['I11', 'a kind of fault did not happen', (h) => h.faults.splice(3, 1)],
  ['P5', 'a row is written twice', (h) => change(h.written, {}, { rows: 4 })],
  ['P5', 'a row is missing', (h) => h.written.splice(0, 1)],
  ['P5', 'a counter was raised once too often', (h) => change(h.counters, {}, { value: 3 })],
  ['P6', 'a recovery took too long', (h) => change(h.recoveries, {}, { ms: 5_500 })],
  ['P7', 'a job was taken from a living worker', (h) => h.thefts.push({ jobId: 'nap', attempt: 1, service: 'w1' })],
  ['P12', 'a subscriber missed a fact', (h) => h.followings[0]?.facts.splice(2, 1)],
  [
    'P12',
    'a subscriber was told a fact twice',
    (h) => h.followings[1]?.facts.splice(2, 0, { ...h.followings[1].facts[1] } as never),
  ],
  ['P12', 'a subscriber was not told the end', (h) => h.followings[0]?.facts.pop()],
  ['P12', 'a subscriber waits for ever', (h) => change(h.followings, { by: 'events' }, { ended: 'still open' })],
  ['P12', 'a gauge goes back', (h) => h.followings[2]?.views.reverse()],
  ['P12', 'the last gauge is not the end', (h) => h.followings[2]?.views.pop()],
  ['COUNTS', 'an API counts wrong', (h) => change(h.counted, { api: 1 }, { count: 7 })],
];

describe('the checker', () => {
  test('finds nothing in a history in which every rule holds', () => {
    expect(check(soundHistory())).toEqual([]);
  });

  test.each(BROKEN)('names %s when %s', (rule, _what, damage) => {
    const history = soundHistory();
    damage(history);
    const rules = check(history).map((violation) => violation.rule);
    expect([...new Set(rules)]).toEqual([rule]);
  });

  test('names I7 when a job has not ended after the quiet', () => {
    const history = soundHistory();
    const job = first(history.jobs, { id: 'nap' });
    job.state = 'RUNNING';
    job.worker = { id: 'wrk_1', lives: false };
    const violations = check(history);
    // Its record says that it has ended, so that others are broken, too.
    expect(violations.map((v) => v.rule)).toContain('I7');
    expect(violations.find((v) => v.rule === 'I7')?.text).toContain('RUNNING on dead worker wrk_1');
  });

  test('was shown a history for every rule that it has', () => {
    expect(new Set([...BROKEN.map(([rule]) => rule), 'I7'])).toEqual(new Set(Object.keys(RULES)));
  });
});
