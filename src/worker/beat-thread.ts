import { parentPort, workerData } from 'node:worker_threads';
import { createBirpc } from 'birpc';
import { openDatabase } from '../db/open.ts';
import type { Database } from '../db/types.ts';
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

const NO_NEWS: BeatPulse = { busy: 0, draining: false, blocked: false };

function createBeats(
  database: Database,
  { blockedMs, maxBlockMs }: BeatThreadStart,
  worker: () => BeatNews,
): BeatCalls {
  let pulse = NO_NEWS;
  let pulsedAt = monotonicMs();
  let current: { workerId: string; beater: Beater } | null = null;

  function beat(boot: BeatBoot) {
    const silentMs = monotonicMs() - pulsedAt;
    const { busy, draining, blocked } = pulse;
    pulse = { ...pulse, blocked: false };
    const status = { leaseMs: boot.leaseMs, busy, draining, blocked: blocked || silentMs > blockedMs };
    return sendBeat(database.beat, boot.workerId, { ...status, hung: silentMs > maxBlockMs });
  }

  function stop(): void {
    current?.beater.stop();
    current = null;
  }

  return {
    open(boot) {
      stop();
      const { workerId, heartbeatMs } = boot;
      const beater = createTimerBeater({
        heartbeatMs,
        beat: () => beat(boot),
        answered(answer, sentAt) {
          if (!answer.alive) beater.stop();
          worker().answered(workerId, answer, sentAt);
        },
        failed: (error) => worker().failed(workerId, error),
      });
      current = { workerId, beater };
      beater.start();
    },
    close(workerId) {
      if (current?.workerId === workerId) stop();
    },
    pulse(next) {
      pulsedAt = monotonicMs();
      // A block that is over is still news until a beat has told of it.
      pulse = { ...next, blocked: next.blocked || pulse.blocked };
    },
    nudge(workerId) {
      if (current?.workerId === workerId) current.beater.nudge();
    },
    async end() {
      stop();
      await database.close();
      // After the answer.
      setImmediate(() => port.close());
    },
  };
}

async function serve(start: BeatThreadStart): Promise<void> {
  const database = await openDatabase({ url: start.databaseUrl, answerMs: { beat: start.answerMs } });
  const worker: BeatNews = createBirpc<BeatNews, BeatCalls>(
    createBeats(database, start, () => worker),
    {
      post: (message) => port.postMessage(message),
      on: (listen) => port.on('message', listen),
      eventNames: ['ready', 'answered', 'failed'],
      timeout: -1,
    },
  );
  worker.ready();
}

await serve(workerData as BeatThreadStart);
