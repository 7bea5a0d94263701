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
  /** One round. */
  run(): Promise<Figures>;
}

/** One line of a report. */
export interface Comparison extends FigureKind {
  figure: string;
  /** Medians and single rounds, by system. */
  systems: Record<string, { median: number; rounds: number[] }>;
  /** The first system's median as a share of each other's, by that one. */
  ratios: Record<string, number>;
}

/**
 * Runs the contenders in turn, as often as the options say; who begins changes from round to round, so that a slow change
 * of the machine does not always meet the same one. The first round of each warms up and is not counted.
 */
export async function compare(
  contenders: readonly Contender[],
  kinds: Record<string, FigureKind>,
  options: BenchOptions,
): Promise<Comparison[]> {
  const results = new Map<Contender, Figures[]>(contenders.map((c) => [c, []]));
  const until = performance.now() + options.budgetMs;
  for (let n = 0; n <= options.rounds; n++) {
    if (n > 1 && performance.now() > until) break;
    const begins = n % contenders.length;
    for (const contender of [...contenders.slice(begins), ...contenders.slice(0, begins)]) {
      const figures = await contender.run();
      const shown = Object.entries(figures).map(([name, value]) => `${name} ${round(value, kinds[name]?.digits ?? 0)}`);
      console.error(`${n === 0 ? 'warm-up' : `round ${n}`}: ${contender.name}: ${shown.join(', ')}`);
      if (n > 0) results.get(contender)?.push(figures);
    }
  }
  return Object.entries(kinds).map(([figure, kind]) => {
    const measured = contenders.map((contender) => {
      const rounds = (results.get(contender) ?? []).map((f) => round(f[figure] ?? Number.NaN, kind.digits));
      return [contender.name, { median: round(median(rounds), kind.digits), rounds }] as const;
    });
    const ours = measured[0]?.[1].median ?? Number.NaN;
    const ratios = measured.slice(1).map(([name, peer]) => [name, round(ours / peer.median, 2)]);
    return { figure, ...kind, systems: Object.fromEntries(measured), ratios: Object.fromEntries(ratios) };
  });
}
