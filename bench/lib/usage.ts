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
