import { parentPort, workerData } from 'node:worker_threads';
import { createBirpc } from 'birpc';
import { openDatabase } from '../db/open.ts';
import { sendBeat } from '../engine/beat.ts';
import type { BeatBoot, BeatCalls, BeatNews, BeatPulse, BeatThreadStart } from './beat-messages.ts';
import { type Beater, createTimerBeater } from './beater.ts';
import { monotonicMs } from './timing.ts';

/**
 * The thread of the beats, with a connection of its own: handlers that keep the worker's event loop busy do not keep
 * the lease from being renewed, until that has lasted for too long.
 */
if (parentPort === null) throw new Error('beat-thread is started by thread-beater.ts');
const port = parentPort;
const { databaseUrl, answerMs, blockedMs, maxBlockMs } = workerData as BeatThreadStart;

const NO_NEWS: BeatPulse = { busy: 0, draining: false, blocked: false };
let pulse = NO_NEWS;
let pulsedAt = monotonicMs();
let current: { workerId: string; beater: Beater } | null = null;

const database = await openDatabase({ url: databaseUrl, answerMs: { beat: answerMs } });

function beat(boot: BeatBoot) {
  const silentMs = monotonicMs() - pulsedAt;
  const { busy, draining, blocked } = pulse;
  pulse = { ...pulse, blocked: false };
  const status = { leaseMs: boot.leaseMs, busy, draining, blocked: blocked || silentMs > blockedMs };
  return sendBeat(database.beat, boot.workerId, { ...status, hung: silentMs > maxBlockMs });
}

function open(boot: BeatBoot): void {
  close(current?.workerId ?? '');
  const { workerId, heartbeatMs } = boot;
  const beater = createTimerBeater({
    heartbeatMs,
    beat: () => beat(boot),
    answered(answer, sentAt) {
      if (!answer.alive) beater.stop();
      void worker.answered(workerId, answer, sentAt);
    },
    failed: (error) => void worker.failed(workerId, error),
  });
  current = { workerId, beater };
  beater.start();
}

function close(workerId: string): void {
  if (current?.workerId !== workerId) return;
  current.beater.stop();
  current = null;
}

const calls: BeatCalls = {
  open,
  close,
  pulse(next) {
    pulsedAt = monotonicMs();
    // A block that is over is still news until a beat has told of it.
    pulse = { ...next, blocked: next.blocked || pulse.blocked };
  },
  nudge(workerId) {
    if (current?.workerId === workerId) current.beater.nudge();
  },
  async end() {
    close(current?.workerId ?? '');
    await database.close();
    // After the answer.
    setImmediate(() => port.close());
  },
};

const worker = createBirpc<BeatNews, BeatCalls>(calls, {
  post: (message) => port.postMessage(message),
  on: (listen) => port.on('message', listen),
  eventNames: ['ready', 'answered', 'failed'],
  timeout: -1,
});
void worker.ready();
