import { parentPort, workerData } from 'node:worker_threads';
import { createBirpc } from 'birpc';
import type { Logger } from '../core/log.ts';
import type { AnyTask } from '../core/task.ts';
import { type AbortMessage, Attempt, type Cover } from './attempt.ts';
import { type Ending, endOfAttempt } from './attempt-end.ts';
import { AttemptWrites } from './attempt-writes.ts';
import { createHandlerContext } from './handler-context.ts';
import { openIsolatedStore } from './isolated-store.ts';
import type { IsolatedCalls, IsolatedEnd, IsolatedNews, IsolatedRun, IsolatedStart } from './isolation-messages.ts';
import { NEWS_EVENTS } from './isolation-messages.ts';
import { LogBuffer } from './log-buffer.ts';
import { ProgressFlusher, ProgressTrack } from './progress-flusher.ts';
import { runHandler } from './run-handler.ts';
import { loadTasks } from './tasks-module.ts';
import { withPlainError, withRealError } from './thread-errors.ts';
import { Trouble } from './trouble.ts';

/**
 * The thread of a handler with `isolation: "thread"`: it runs attempts of the tasks of one module, one after the other.
 * What it says about its job goes through the worker, so that leases, cancels and the end of an attempt are one matter
 * for all handlers. Only transactions have a connection of the thread's own.
 */
if (parentPort === null) throw new Error('isolated is started by isolated-thread.ts');
const port = parentPort;
const start = workerData as IsolatedStart;

const LAST_LINES_MS = 1_000;

const worker = createBirpc<IsolatedNews, IsolatedCalls>(
  { run, abort },
  {
    post: (message) => port.postMessage(message),
    on: (listen) => port.on('message', listen),
    eventNames: [...NEWS_EVENTS],
    timeout: -1,
    serialize: withPlainError,
    deserialize: withRealError,
  },
);
const log: Logger = {
  debug: (data, message) => void worker.log('debug', plain(data), message),
  info: (data, message) => void worker.log('info', plain(data), message),
  warn: (data, message) => void worker.log('warn', plain(data), message),
  error: (data, message) => void worker.log('error', plain(data), message),
};
const store = await openIsolatedStore(start, worker);
const tasks = new Map<string, AnyTask>();
let current: Attempt | null = null;
/** What came while the attempt was still being prepared. */
let early: AbortMessage[] = [];

// The worker is free while a handler computes here, so it may have been told more than this thread has read.
const cover: Cover = { alive: false, sure: () => worker.sure() };

async function run({ job, workerId }: IsolatedRun): Promise<IsolatedEnd> {
  early = [];
  const task = await taskNamed(job.task);
  const attempt = new Attempt(job, task, workerId, cover);
  current = attempt;
  const flusher = new ProgressFlusher(worker, log, () => {});
  const track = new ProgressTrack(job, task.definition.stages, flusher);
  const logs = new LogBuffer(worker, log);
  attempt.onAbort(() => {
    if (attempt.lost) track.close();
  });
  const writes = new AttemptWrites(attempt, {
    execution: store.execution,
    track,
    trouble: new Trouble({ log, doing: 'save a checkpoint' }),
    maxCheckpointBytes: start.maxBytes.checkpoint,
  });
  for (const message of early) abort(message);
  const { gathering, publicUrl } = start;
  const { ctx, load } = createHandlerContext({ attempt, writes, track, logs, log, db: store.db, gathering, publicUrl });
  const ending = await Promise.race([runHandler(attempt, ctx, load), whenSuspended(attempt)]);
  attempt.close();
  if (ending.kind === 'suspended') attempt.abort('suspended');
  const end = endOfAttempt(attempt, ending, start.maxBytes.result);
  const progress = track.last();
  track.close();
  await Promise.all([flusher.stop(), logs.stop(LAST_LINES_MS)]);
  current = null;
  return { end, progress };
}

function whenSuspended(attempt: Attempt): Promise<Ending> {
  return new Promise((resolve) => {
    attempt.onSuspended((wait) => resolve({ kind: 'suspended', wait }));
  });
}

function abort(message: AbortMessage): void {
  if (current === null) early.push(message);
  else current.abort(message.kind, message.message);
}

async function taskNamed(name: string): Promise<AnyTask> {
  if (tasks.size === 0) {
    try {
      for (const task of (await loadTasks(start.module)).tasks) tasks.set(task.name, task);
    } catch (error) {
      // Where the file is is the operator's business; the job's error is shown to clients.
      log.error({ err: error, module: start.module }, 'the tasks file could not be loaded in a thread');
      throw new Error(`the module of task ${JSON.stringify(name)} could not be loaded in a thread`);
    }
  }
  const task = tasks.get(name);
  if (!task) throw new Error(`its module exports no task ${JSON.stringify(name)}`);
  return task;
}

/** What cannot be copied to another thread must not keep a line from being logged. */
function plain(data: object): object {
  try {
    return structuredClone(data);
  } catch {
    return { data: String(data) };
  }
}
