import fc from 'fast-check';
import type { Action, ActionOf, ExpectedRun, Said, SavedKind, Target } from './action.ts';
import type { Submission } from './model-clients.ts';

const at: fc.Arbitrary<Target> = record({
  job: fc.nat({ max: 5 }),
  late: weighted([6, false], [1, true]),
  attempt: fc.nat({ max: 4 }),
});
const job = fc.nat({ max: 7 });
const worker = fc.nat({ max: 4 });
const n = fc.nat({ max: 2 });
const key = fc.constantFrom('a', 'b', 'c');
const run: fc.Arbitrary<ExpectedRun> = weighted([3, 'any'], [1, 'right'], [1, 'wrong']);
const tasks = fc.constantFrom<string[]>(['alpha'], ['beta'], ['alpha', 'beta'], ['alpha', 'beta']);

export const submissionWith = (key: fc.Arbitrary<string | null>): fc.Arbitrary<Submission> =>
  record({
    task: fc.nat({ max: 1 }),
    input: fc.nat({ max: 1 }),
    priority: weighted([4, 0], [1, 1], [1, -1]),
    delayHours: weighted([4, 0], [1, 1], [1, 3]),
    key,
    scope: weighted([2, 'RETENTION'], [1, 'UNTIL_FINISHED']),
  });
export const keys = fc.constantFrom('k', 'l');
const submission = submissionWith(fc.option(keys, { freq: 2 }));

export const submit = of<'submit'>({ do: 'submit', jobs: fc.tuple(submission) });
export const submitMany = of<'submit'>({
  do: 'submit',
  jobs: fc.array(submission, { minLength: 2, maxLength: 3 }),
});
export const claim = of<'claim'>({ do: 'claim', worker, tasks, limit: fc.integer({ min: 1, max: 3 }) });
export const end = of<'end'>({
  do: 'end',
  at,
  outcome: weighted<Said>(
    [4, 'SUCCEEDED'],
    [4, 'FAILED'],
    [1, 'TIMED_OUT'],
    [2, 'POSTPONED'],
    [2, 'RELEASED'],
    [2, 'CANCELED'],
  ),
  n,
  retryable: weighted([5, true], [1, false]),
  delayHours: fc.constantFrom(0, 1, 3),
  progress: fc.boolean(),
});
export const save = of<'save'>({
  do: 'save',
  at,
  key,
  kind: weighted<SavedKind>([2, 'STEP'], [1, 'CURSOR'], [1, 'COUNTED CURSOR']),
  n,
  rows: weighted([1, false], [1, true]),
  progress: fc.boolean(),
});
export const progress = of<'progress'>({ do: 'progress', at, n });
export const cancel = of<'cancel'>({ do: 'cancel', job, reason: fc.constantFrom(null, 'why'), run });
export const retry = of<'retry'>({
  do: 'retry',
  job,
  run,
  from: weighted<ActionOf<'retry'>['from']>([4, 'here'], [2, 'start'], [3, 'checkpoint'], [1, 'both']),
  key,
});
const advance = of<'advance'>({ do: 'advance', hours: weighted([5, 1], [4, 2], [2, 4], [1, 12], [1, 24], [1, 36]) });

export const beat = of<'beat'>({
  do: 'beat',
  worker,
  draining: weighted([4, false], [1, true]),
  hung: weighted([6, false], [1, true]),
});

/** Any one action. */
export const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: submit },
  { weight: 2, arbitrary: submitMany },
  { weight: 14, arbitrary: claim },
  { weight: 16, arbitrary: end },
  { weight: 6, arbitrary: save },
  { weight: 2, arbitrary: progress },
  { weight: 4, arbitrary: of<'delivered'>({ do: 'delivered', at }) },
  { weight: 6, arbitrary: cancel },
  { weight: 8, arbitrary: retry },
  { weight: 3, arbitrary: of<'runNow'>({ do: 'runNow', job }) },
  { weight: 4, arbitrary: advance },
  { weight: 5, arbitrary: pass('stage') },
  { weight: 5, arbitrary: pass('rescue') },
  { weight: 1, arbitrary: pass('recover') },
  { weight: 4, arbitrary: pass('prune') },
  { weight: 1, arbitrary: pass('fold') },
  { weight: 7, arbitrary: pass('boot') },
  { weight: 1, arbitrary: of<'leave'>({ do: 'leave', worker }) },
  { weight: 3, arbitrary: beat },
  {
    weight: 2,
    arbitrary: of<'past'>({
      do: 'past',
      job,
      releases: fc.constantFrom(null, 19, 20),
      postponements: fc.constantFrom(null, 999, 1_000),
    }),
  },
);

type Values<A> = { [K in keyof A]: K extends 'do' ? A[K] : fc.Arbitrary<A[K]> | A[K] };

export function of<K extends Action['do']>(values: Values<ActionOf<K>>): fc.Arbitrary<ActionOf<K>> {
  const entries = Object.entries(values).map(([name, value]) => [
    name,
    value instanceof fc.Arbitrary ? value : fc.constant(value),
  ]);
  return record(Object.fromEntries(entries)) as unknown as fc.Arbitrary<ActionOf<K>>;
}

export function pass(name: 'stage' | 'rescue' | 'recover' | 'prune' | 'fold' | 'boot'): fc.Arbitrary<Action> {
  return fc.constant({ do: name });
}

/** Plain objects, which print as they are written. */
export function record<T>(values: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(values, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

export function weighted<T>(...choices: [weight: number, value: T][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));
}
