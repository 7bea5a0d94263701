import type { JobState } from '../../../src/core/state.ts';
import { type Dice, diceFor } from '../dice.ts';

/** One job to be handed in, and what is done about it afterwards. */
export interface JobPlan {
  readonly n: number;
  readonly task: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Idempotency key. */
  readonly key: string;
  /** Index of the API that is asked first. */
  readonly api: number;
  /** Handed in through both APIs at the same time. */
  readonly twice: boolean;
  /** Canceled by a client so long after it was accepted. */
  readonly cancelAfterMs: number | null;
  /** Retried by a client once it has failed. */
  readonly retry: boolean;
  readonly follow: 'no' | 'events' | 'raw events' | 'progress';
  /** Only facts behind this `seq` are asked for. */
  readonly after: number;
  /** It depends on a job that was accepted before, however that ends. */
  readonly behind: boolean;
  /** States in which it may end. */
  readonly ends: readonly JobState[];
}

type Kind = (dice: Dice) => Pick<JobPlan, 'task' | 'input'> & Partial<JobPlan>;

const KINDS: readonly { weight: number; kind: Kind; cancelable: boolean }[] = [
  { weight: 3, cancelable: true, kind: () => ({ task: 'echo', input: { text: 'hello' } }) },
  { weight: 5, cancelable: true, kind: (d) => ({ task: 'steps', input: { n: d.int(3, 12), ms: d.int(50, 550) } }) },
  { weight: 2, cancelable: true, kind: (d) => ({ task: 'batches', input: { items: d.int(200, 2_000), size: 50 } }) },
  { weight: 3, cancelable: true, kind: (d) => ({ task: 'counter', input: { n: d.int(10, 40) } }) },
  { weight: 2, cancelable: false, kind: (d) => ({ task: 'flaky', input: { k: d.int(1, 3) } }) },
  { weight: 2, cancelable: true, kind: (d) => ({ task: 'nap', input: { ms: d.int(500, 4_000) } }) },
  { weight: 1, cancelable: true, kind: (d) => ({ task: 'deaf', input: { ms: d.int(500, 7_000) } }) },
  { weight: 1, cancelable: false, kind: (d) => ({ task: 'burst', input: { n: d.int(200, 2_000) } }) },
  { weight: 1, cancelable: false, kind: () => ({ task: 'doomed', input: {}, ends: ['FAILED'] }) },
  { weight: 2, cancelable: true, kind: (d) => ({ task: 'family', input: { n: d.int(1, 5) } }) },
  { weight: 2, cancelable: true, kind: (d) => ({ task: 'waits', input: { ms: d.int(50, 1_500) } }) },
  { weight: 2, cancelable: true, kind: () => ({ task: 'echo', input: { text: 'behind' }, behind: true }) },
  { weight: 1, cancelable: false, kind: () => ({ task: 'secondRun', input: {}, retry: true }) },
];
const DECK = KINDS.flatMap(({ weight, ...rest }) => Array.from({ length: weight }, () => rest));

/** The jobs of a round, one after another: the n-th is the same whatever becomes of the others. */
export function* planJobs(seed: number): Generator<JobPlan, never> {
  const dice = diceFor(seed, 'jobs');
  for (let n = 0; ; n++) {
    const { kind, cancelable } = dice.pick(DECK);
    const cancelAfterMs = cancelable && dice.chance(0.15) ? dice.int(0, 2_000) : null;
    yield {
      n,
      key: `chaos-${seed}-${n}`,
      api: dice.int(0, 1),
      twice: dice.chance(0.1),
      cancelAfterMs,
      retry: false,
      behind: false,
      follow: dice.pick(['no', 'no', 'no', 'events', 'raw events', 'progress'] as const),
      after: dice.int(0, 1),
      ends: cancelAfterMs === null ? ['COMPLETED'] : ['COMPLETED', 'CANCELED'],
      ...kind(dice),
    };
  }
}
