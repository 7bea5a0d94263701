import { MAX_DURATION_MS } from '../core/duration.ts';
import { InvalidInput, NotFound } from '../core/errors.ts';
import type { QueueRow } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import type { Database } from '../db/types.ts';
import { pauseQueue, resumeQueue, setQueueLimits, tasksInLine } from '../db/writes/queues.ts';
import type { Announcer } from './commit.ts';
import { checkReason } from './control.ts';
import type { LimitedQueues } from './limited-queues.ts';
import type { QueueLimits, QueuesEngine } from './queue-types.ts';

const MAX_RUNNING = 100_000;
const MAX_STARTS = 1_000_000;

/** The verbs by which people steer a queue. Each is one statement, so that of two at once the later one stands. */
export function createQueues(
  database: Database,
  channel: Pick<Announcer, 'publishReady'>,
  limited: LimitedQueues,
): QueuesEngine {
  const db = database.submit;

  async function existing(name: string, write: () => Promise<QueueRow | null>): Promise<QueueRow> {
    const queue = textProblem(name) ? null : await write();
    if (!queue) throw new NotFound('queue', name);
    return queue;
  }

  /** Nothing else tells idle workers that they may take what is in line. */
  async function wake({ name, paused }: QueueRow): Promise<void> {
    if (paused) return;
    const tasks = await tasksInLine(db, name);
    if (tasks.length > 0) channel.publishReady(tasks.map((task) => ({ queue: name, task, ahead: true })));
  }

  return {
    async pause({ actor }, name, { reason = null } = {}) {
      checkReason(reason);
      return existing(name, () => pauseQueue(db, name, { actor, reason }));
    },

    async resume(_caller, name) {
      const queue = await existing(name, () => resumeQueue(db, name));
      await wake(queue);
      return queue;
    },

    async update(_caller, name, limits) {
      checkLimits(limits);
      const { maxRunning, rateLimit } = limits;
      const queue = await existing(name, () => setQueueLimits(db, name, { maxRunning, rateLimit }));
      limited.forget();
      await wake(queue);
      return queue;
    },
  };
}

function checkLimits({ maxRunning, rateLimit }: QueueLimits): void {
  const issues = [
    ...(maxRunning == null ? [] : rangeIssue('maxRunning', maxRunning, MAX_RUNNING)),
    ...(rateLimit == null ? [] : rangeIssue('rateLimit.max', rateLimit.max, MAX_STARTS)),
    ...(rateLimit == null ? [] : perIssue(rateLimit.perMs)),
  ];
  if (issues.length > 0) throw new InvalidInput(issues);
}

function rangeIssue(path: string, value: number, max: number) {
  if (Number.isInteger(value) && value >= 1 && value <= max) return [];
  return [{ path, message: `must be a whole number from 1 to ${max}, not ${value}` }];
}

function perIssue(ms: number) {
  if (Number.isInteger(ms) && ms >= 1 && ms <= MAX_DURATION_MS) return [];
  return [{ path: 'rateLimit.per', message: 'must be a duration from 1ms to 100 years' }];
}
