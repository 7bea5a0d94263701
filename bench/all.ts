import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { benchOptions } from './lib/options.ts';

/** Runs all benchmarks, one after another: nothing else may use the machine meanwhile, not even the next benchmark. */
const options = benchOptions();
const reports: unknown[] = [];
for (const name of [
  'submit',
  'drain',
  'dispatch',
  'completion',
  'steps',
  'progress',
  'graphql',
  'live',
  'processes',
  'memory',
  'growth',
  'reads',
]) {
  console.error(`\n${name}`);
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, script, ...process.argv.slice(2)], {
    stdio: ['ignore', options.json ? 'pipe' : 'inherit', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(status ?? 1);
  if (options.json) reports.push(JSON.parse(stdout));
}
if (options.json) console.log(JSON.stringify(reports, null, 2));
