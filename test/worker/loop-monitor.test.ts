import { expect, test } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import { LoopMonitor } from '../../src/worker/loop-monitor.ts';
import { eventually } from '../support/eventually.ts';

function block(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('a blocked loop is reported once, and logged with its length', async () => {
  const logged: object[] = [];
  const monitor = new LoopMonitor(300, { ...silentLogger, warn: (data) => void logged.push(data) });
  monitor.start();
  monitor.start();
  await eventually(() => expect(monitor.takeBlocked()).toBe(false));
  block(900);
  expect(monitor.takeBlocked()).toBe(true);
  expect(logged).toEqual([{ blockedMs: expect.toSatisfy((ms: number) => ms > 250) }]);
  await eventually(() => expect(monitor.takeBlocked()).toBe(false));
  monitor.stop();
  block(900);
  expect(monitor.takeBlocked()).toBe(false);
});
