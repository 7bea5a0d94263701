import { type Dice, diceFor } from './dice.ts';
import { APIS, LEASE_MS, LINKS, STORES, type StoreName, WORKERS } from './settings.ts';

/** Everything that can be done to the processes, the stores and the links between them. */
export const FAULT_KINDS = [
  'kill-worker',
  'kill-api',
  'kill-postgres',
  'stop-postgres',
  'kill-redis',
  'freeze-worker',
  'terminate-backends',
  'drop-pubsub',
  'drop-normal',
  'cut',
  'blackhole',
  'delay',
  'throttle',
  'restart-worker',
  'restart-api',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

export interface PlannedFault {
  /** Since the load began. */
  atMs: number;
  kind: FaultKind;
  /** A process, a link or a store. */
  target: string;
  /** How long it lasts; for what is killed, how long it stays away. */
  holdMs: number;
  /** `delay`: milliseconds; `throttle`: bytes per second. */
  setting?: number;
  /** Nothing else happens around it: recovery is measured by these. */
  calm: boolean;
}

const ON_LINKS: readonly FaultKind[] = ['cut', 'blackhole', 'delay', 'throttle'];

/** Around a calm kill nothing else is wrong for so long: who sweeps must first have seen the store for a whole lease. */
const CALM_BEFORE_MS = 6_000;
const CALM_AFTER_MS = 5_500;
/** What was begun last has to be over when the next calm begins. */
const TAIL_MS = 5_000;

/**
 * What happens when: a pure function of seed and length. Each minute has every kind once, in an order of its own; what
 * happens to links once on the way to Postgres and once on the way to Redis.
 */
export function planFaults(seed: number, minutes: number): PlannedFault[] {
  const dice = diceFor(seed, 'faults');
  const decks = Math.max(1, Math.floor(minutes));
  const deckMs = (minutes * 60_000) / decks;
  return Array.from({ length: decks }, (_, deck) => deckOfFaults(dice, deck * deckMs, deckMs)).flat();
}

function deckOfFaults(dice: Dice, from: number, lengthMs: number): PlannedFault[] {
  const calm: PlannedFault = { ...fault(dice, 'kill-worker'), atMs: from + CALM_BEFORE_MS, calm: true };
  const faults = FAULT_KINDS.flatMap((kind) =>
    ON_LINKS.includes(kind) ? STORES.map((store) => fault(dice, kind, store)) : [fault(dice, kind)],
  );
  const begin = from + CALM_BEFORE_MS + CALM_AFTER_MS;
  const slotMs = (from + lengthMs - TAIL_MS - begin) / faults.length;
  const placed = dice
    .shuffled(faults)
    .map((one, i) => ({ ...one, atMs: Math.round(begin + (i + dice.next()) * slotMs) }));
  return [calm, ...placed];
}

function fault(dice: Dice, kind: FaultKind, store?: StoreName): PlannedFault {
  const links = LINKS.filter((link) => store === undefined || link.endsWith(store));
  const of = (target: string, least: number, most: number, setting?: number): PlannedFault => ({
    atMs: 0,
    kind,
    target,
    holdMs: dice.int(least, most),
    ...(setting === undefined ? {} : { setting }),
    calm: false,
  });
  switch (kind) {
    case 'kill-worker':
      return of(dice.pick(WORKERS), 0, 2_000);
    case 'kill-api':
      return of(dice.pick(APIS), 0, 2_000);
    case 'kill-postgres':
      return of('postgres', 0, 2_000);
    case 'stop-postgres':
      // Now and then longer than a lease: that alone must cost nobody an attempt.
      return of('postgres', 500, LEASE_MS + 2_000);
    case 'kill-redis':
      return of('redis', 0, 4_000);
    case 'freeze-worker':
      return of(dice.pick(WORKERS), LEASE_MS + 1_500, LEASE_MS + 3_500);
    case 'terminate-backends':
      return of('postgres', 0, 0);
    case 'drop-pubsub':
    case 'drop-normal':
      return of('redis', 0, 0);
    case 'cut':
      return of(dice.pick(links), 100, 3_000);
    case 'blackhole':
      return of(dice.pick(links), 1_500, 6_000);
    case 'delay':
      return of(dice.pick(links), 2_000, 5_000, dice.int(30, 400));
    case 'throttle':
      return of(dice.pick(links), 2_000, 5_000, dice.int(2_000, 50_000));
    case 'restart-worker':
      return of(dice.pick(WORKERS), 0, 1_000);
    case 'restart-api':
      return of(dice.pick(APIS), 0, 1_000);
  }
}

/** One line about a fault, for people. */
export function describeFault({ atMs, kind, target, holdMs, setting, calm }: PlannedFault): string {
  const unit = kind === 'delay' ? ' ms' : ' bytes/s';
  const how = setting === undefined ? '' : `, ${setting}${unit}`;
  return `${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind} ${target}${holdMs > 0 ? ` for ${holdMs} ms` : ''}${how}${calm ? ' (calm)' : ''}`;
}
