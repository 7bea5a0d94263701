import { readFile } from 'node:fs/promises';

/** What a process uses, as Linux tells it. */
export interface Usage {
  /** Resident memory. */
  megabytes: number;
  /** Time on the processors since its start. */
  cpuMs: number;
}

/** Linux counts in hundredths of a second whatever the machine (`getconf CLK_TCK`). */
const TICK_MS = 10;

export async function usageOf(pid: number): Promise<Usage> {
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8'),
    readFile(`/proc/${pid}/stat`, 'utf8'),
  ]);
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  // The name, in parentheses, may have spaces; user and system time are the 12th and 13th fields behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { megabytes: kilobytes / 1_024, cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS };
}

/**
 * Counts the processor time that the host of a virtual machine gives to others. Each call of what it returns tells that
 * share of the time since the last call; 0 where nothing tells.
 */
export function stolenShare(): () => Promise<number> {
  let before: readonly number[] | undefined;
  return async () => {
    const line = /^cpu +(.*)/.exec(await readFile('/proc/stat', 'utf8').catch(() => ''))?.[1] ?? '';
    const now = line.split(' ').map(Number);
    const past = now.map((ticks, i) => ticks - (before?.[i] ?? 0));
    before = now;
    const all = past.slice(0, 8).reduce((sum, ticks) => sum + ticks, 0);
    return all > 0 ? (past[7] ?? 0) / all : 0;
  };
}
