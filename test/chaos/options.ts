import { parseArgs } from 'node:util';

/** What a round is told on its command line. */
export interface Options {
  /** How long load and faults last; start, quiet and check come on top. */
  minutes: number;
  /** Decides jobs and faults. */
  seed: number;
  /** Keep the logs of the processes also when everything held. */
  keep: boolean;
}

/** @throws Error that says what is wrong */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, keep: { type: 'boolean' } },
  });
  const minutes = Number(values.minutes ?? 3);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  // Every kind of fault has to fit in.
  if (!(minutes >= 1)) throw new Error('--minutes must be a number from 1');
  if (!Number.isInteger(seed)) throw new Error('--seed must be an integer');
  return { minutes, seed, keep: values.keep ?? false };
}
