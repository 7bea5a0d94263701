import { afterEach } from 'vitest';
import type { JobChange } from '../../src/core/change.ts';
import type { Logger } from '../../src/core/log.ts';
import type { LiveChannel } from '../../src/events/channel.ts';
import { eventually } from '../support/eventually.ts';

const opened: LiveChannel[] = [];

/** Registers that channels which a test opened by `track` are closed after it. */
export function closeChannelsAfterEach(): void {
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((channel) => channel.close()));
  });
}

export function track(channel: LiveChannel): LiveChannel {
  opened.push(channel);
  return channel;
}

interface Line {
  level: string;
  message: string;
}

/** A log that keeps what is written. */
export function recorder(): { log: Logger; lines: Line[] } {
  const lines: Line[] = [];
  const write = (level: string) => (_data: object, message: string) => void lines.push({ level, message });
  return { lines, log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } };
}

export function changeOf(jobId: string, overrides: Partial<JobChange> = {}): JobChange {
  return {
    ...{ jobId, tenant: 'default', task: 'report', queue: 'default', run: 1 },
    ...{ from: 'QUEUED', state: 'RUNNING', version: 2, lastSeq: 2, ...overrides },
  };
}

export function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  return eventually(async () => {
    if (!(await condition())) throw new Error(`not so: ${condition}`);
  });
}

export async function live(channel: LiveChannel): Promise<LiveChannel> {
  await until(() => channel.state === 'live');
  return channel;
}
