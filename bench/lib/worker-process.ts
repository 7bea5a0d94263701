import { Child } from './child.ts';
import type { FromWorker, ToWorker, WorkerSettings } from './worker-protocol.ts';

/** A worker in a process of its own, as users run it. It lives through all rounds and works only between start and stop. */
export class WorkerProcess extends Child<ToWorker, FromWorker> {
  constructor(module: URL, settings: WorkerSettings) {
    super(module, [JSON.stringify(settings)]);
  }
}
