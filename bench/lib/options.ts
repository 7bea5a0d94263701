import { parseArgs } from 'node:util';
import { PEERS, type PeerId } from '../systems/system.ts';

/** How much one benchmark does. Every one of these is a bound: a benchmark always ends. */
export interface BenchOptions {
  /** A small round of everything, so that the benchmarks cannot rot; its figures mean nothing. */
  short: boolean;
  /** One JSON document on stdout in place of the table. */
  json: boolean;
  /** The only peers to compare with; undefined: all that a benchmark has. One that has none of them runs Waymark alone. */
  peers: readonly PeerId[] | undefined;
  /** Measured rounds of each system; one more of each comes before and is not counted. */
  rounds: number;
  /** No further round begins after this time. */
  budgetMs: number;
}

const USAGE = `Usage: node --conditions=waymark-source --import=tsx bench/<name>.ts [options]
  --short     one small round of everything; the figures mean nothing
  --json      one JSON document on stdout
  --rounds N  measured rounds of each system (default 5)
  --peers A,B compare with these only, where a benchmark has them (default: all that it has):
              ${PEERS.join(', ')}`;

/** Parses the command line of a benchmark; ends the process on a wrong one. */
export function benchOptions(args = process.argv.slice(2)): BenchOptions {
  try {
    const { values } = parseArgs({
      args,
      options: {
        short: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        peers: { type: 'string' },
      },
    });
    const rounds = values.rounds === undefined ? (values.short ? 1 : 5) : Number(values.rounds);
    if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) throw new Error('--rounds must be from 1 to 100');
    const peers = values.peers?.split(',').map(peerOf);
    return { short: values.short, json: values.json, rounds, peers, budgetMs: values.short ? 60_000 : 600_000 };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

function peerOf(text: string): PeerId {
  const peer = PEERS.find((id) => id === text.trim());
  if (peer === undefined) throw new Error(`--peers: there is no ${JSON.stringify(text)}`);
  return peer;
}
