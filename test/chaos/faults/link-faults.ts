import { setTimeout as sleep } from 'node:timers/promises';
import type { Link, Mode } from '../cluster/link.ts';
import type { PlannedFault } from '../schedule.ts';
import type { Seen } from './fault-record.ts';

/** Puts a link into another mode for a while. */
export async function disturbLink(link: Link, { kind, setting = 0, holdMs }: PlannedFault): Promise<Seen> {
  link.set(modeOf(kind, setting));
  await sleep(holdMs);
  const { touched } = link;
  link.set({ kind: 'pass' });
  return { observed: touched > 0, detail: `${touched} ${kind === 'cut' ? 'connections' : 'pieces'} felt it` };
}

function modeOf(kind: PlannedFault['kind'], setting: number): Mode {
  switch (kind) {
    case 'cut':
    case 'blackhole':
      return { kind };
    case 'delay':
      return { kind, ms: setting };
    case 'throttle':
      return { kind, bytesPerSecond: setting };
    default:
      throw new Error(`${kind} is nothing that a link can do`);
  }
}
