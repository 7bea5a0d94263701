import { median, round } from './figures.ts';
import type { BenchOptions } from './options.ts';

/** What one round of one system measured, by the figure's name. */
export type Figures = Record<string, number>;

export interface FigureKind {
  unit: string;
  better: 'higher' | 'lower';
  digits: number;
}

export interface Contender {
  name: string;
  /** One round: prepares by itself what it needs, and measures only what the benchmark is about. */
  run(): Promise<Figures>;
}

/** One line of a report. */
export interface Comparison extends FigureKind {
  figure: string;
  /** Medians and single rounds, by system. */
  systems: Record<string, { median: number; rounds: number[] }>;
  /** The first system's median as a share of the second's. */
  ratio: number;
}

/**
 * Runs both contenders in turn, as often as the options say; who begins changes from round to round, so that neither
 * always has the machine as the other left it. The first round of each warms up and is not counted.
 */
export async function compare(
  contenders: readonly [Contender, Contender],
  kinds: Record<string, FigureKind>,
  options: BenchOptions,
): Promise<Comparison[]> {
  const [ours, peer] = contenders;
  const results = new Map<Contender, Figures[]>(contenders.map((c) => [c, []]));
  const until = performance.now() + options.budgetMs;
  for (let n = 0; n <= options.rounds; n++) {
    if (n > 1 && performance.now() > until) break;
    for (const contender of n % 2 === 0 ? [ours, peer] : [peer, ours]) {
      const figures = await contender.run();
      const shown = Object.entries(figures).map(([name, value]) => `${name} ${round(value, kinds[name]?.digits ?? 0)}`);
      console.error(`${n === 0 ? 'warm-up' : `round ${n}`}: ${contender.name}: ${shown.join(', ')}`);
      if (n > 0) results.get(contender)?.push(figures);
    }
  }
  return Object.entries(kinds).map(([figure, kind]) => {
    const of = (contender: Contender) => {
      const rounds = (results.get(contender) ?? []).map((f) => round(f[figure] ?? Number.NaN, kind.digits));
      return { median: round(median(rounds), kind.digits), rounds };
    };
    const systems = { [ours.name]: of(ours), [peer.name]: of(peer) };
    const ratio = (systems[ours.name]?.median ?? Number.NaN) / (systems[peer.name]?.median ?? Number.NaN);
    return { figure, ...kind, systems, ratio: round(ratio, 2) };
  });
}
