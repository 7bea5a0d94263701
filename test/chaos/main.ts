import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUp } from '../cli/program.ts';
import { check } from './check/checker.ts';
import { type Options, parseOptions } from './options.ts';
import { describeRound, describeViolations } from './report.ts';
import { runRound } from './round.ts';
import { describeFault, planFaults } from './schedule.ts';

/** `npm run test:chaos -- --minutes N --seed S`: exit code 0 when every rule held, else 1. */
const say = (line: string) => console.log(line);
process.exit(await main());

async function main(): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(process.argv.slice(2));
  } catch (error) {
    say((error as Error).message);
    return 1;
  }
  const { minutes, seed, keep } = options;
  say(`seed ${seed}, ${minutes} min (repeat with: npm run test:chaos -- --minutes ${minutes} --seed ${seed})`);
  for (const fault of planFaults(seed, minutes)) say(describeFault(fault));

  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error(`${signal}: the round was ended before its time`)));
  }
  // A fault of the bench itself must not leave its processes behind.
  process.on('uncaughtException', (error) => stop.abort(error));
  const dir = await mkdtemp(join(tmpdir(), 'waymark-chaos-'));
  let held = false;
  try {
    const round = await runRound({ seed, minutes, dir, signal: stop.signal }, say);
    say(`\n${describeRound(round)}\n`);
    const violations = check(round.history);
    held = violations.length === 0;
    await writeFile(join(dir, 'history.json'), JSON.stringify(round.history));
    say(held ? 'every rule held' : `VIOLATED\n${describeViolations(violations)}`);
  } catch (error) {
    say(`the round could not be finished: ${error instanceof Error ? error.stack : error}`);
  } finally {
    await cleanUp();
    if (held && !keep) await rm(dir, { recursive: true, force: true });
    else say(`logs of all processes, and what the checker saw: ${dir}`);
  }
  return held ? 0 : 1;
}
