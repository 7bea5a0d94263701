import { cpus, totalmem } from 'node:os';
import type { BenchOptions } from './options.ts';
import type { Comparison } from './rounds.ts';
import type { Machine } from './services.ts';

export interface Report {
  benchmark: string;
  /** What was measured, in one sentence. */
  what: string;
  /** How each system was set, by system. */
  settings: Record<string, string>;
  comparisons: Comparison[];
}

/** Prints a report as a table, or as JSON for scripts. */
export function print(report: Report, machine: Machine, options: BenchOptions): void {
  const about = {
    at: new Date().toISOString(),
    node: process.version,
    postgres: machine.postgresVersion,
    redis: machine.redis,
    cpus: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    short: options.short,
  };
  if (options.json) {
    console.log(JSON.stringify({ ...report, ...about }, null, 2));
    return;
  }
  console.log(`\n${report.benchmark}: ${report.what}`);
  for (const [system, text] of Object.entries(report.settings)) console.log(`  ${system}: ${text}`);
  console.log(`  Node ${about.node}, Postgres ${about.postgres}, Redis ${about.redis}, ${about.cpus}\n`);
  console.log(table(report.comparisons));
  if (options.short) console.log('\nA short round: it proves that the benchmark works; its figures mean nothing.');
}

function table(comparisons: readonly Comparison[]): string {
  const names = Object.keys(comparisons[0]?.systems ?? {});
  const peers = Object.keys(comparisons[0]?.ratios ?? {});
  const rows = comparisons.map(({ figure, unit, better, digits, systems, ratios }) => [
    `${figure} (${unit}, ${better} is better)`,
    ...names.map((name) =>
      (systems[name]?.median ?? Number.NaN).toLocaleString('en', { minimumFractionDigits: digits }),
    ),
    ...peers.map((peer) => (ratios[peer] ?? Number.NaN).toFixed(2)),
  ]);
  const all = [['median of rounds', ...names, ...peers.map((peer) => `of ${peer}`)], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  return all
    .map((row) =>
      row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
    )
    .join('\n');
}
