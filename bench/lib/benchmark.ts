import type { OpenSystem } from '../systems/open.ts';
import type { Submitter, System } from '../systems/system.ts';
import type { BenchOptions } from './options.ts';
import { print } from './report.ts';
import { compare, type FigureKind, type Figures } from './rounds.ts';
import { type Machine, withServices } from './services.ts';

export interface Benchmark<S extends Submitter, Open extends OpenSystem<S>> {
  benchmark: string;
  /** What is measured, in one sentence. */
  what: string;
  /** The figures of a round, in the order of the report. */
  kinds: Record<string, FigureKind>;
  /** Waymark, then every peer that it can be compared with here. */
  systems: readonly [System<S>, ...System<S>[]];
  open(system: System<S>, machine: Machine): Promise<Open>;
  /** Gives one system's round: it prepares by itself what it needs, and measures only what the benchmark is about. */
  roundOf(system: Open): () => Promise<Figures>;
}

/** Measures Waymark and the chosen peers in turn, and prints the report. */
export async function runBenchmark<S extends Submitter, Open extends OpenSystem<S>>(
  { benchmark, what, kinds, systems: [ours, ...peers], open, roundOf }: Benchmark<S, Open>,
  options: BenchOptions,
): Promise<void> {
  await withServices(async (machine) => {
    const chosen = peers.filter(({ id }) => options.peers === undefined || options.peers.some((peer) => peer === id));
    const systems: Open[] = [];
    for (const system of [ours, ...chosen]) systems.push(await open(system, machine));
    const contenders = systems.map((system) => ({ name: system.name, run: roundOf(system) }));
    const settings = Object.fromEntries(systems.map(({ name, setting }) => [name, setting]));
    print({ benchmark, what, settings, comparisons: await compare(contenders, kinds, options) }, machine, options);
  });
}
