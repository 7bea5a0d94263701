import { type AppOptions, createApp } from '../app.ts';
import type { Config } from '../config.ts';
import type { Logger } from '../core/log.ts';
import { loadTasks } from '../worker/tasks-module.ts';

export interface ServiceOptions extends Omit<AppOptions, 'tasks'> {
  config: Config;
  log: Logger;
  tasksFile?: string;
}

/**
 * Runs a service until SIGTERM or SIGINT, then stops it in good order: not ready, no new claims, sockets closed, handlers
 * given their grace time. A second signal ends the process at once.
 */
export async function runService({ config, log, tasksFile, ...options }: ServiceOptions): Promise<void> {
  const tasks = tasksFile === undefined ? undefined : await loadTasks(tasksFile);
  const app = createApp(config, { ...options, log, ...(tasks ? { tasks } : {}) });
  const ending = endOfService(log, options.roles.worker);
  try {
    await Promise.race([app.start(), ending.promise]);
    const { fault } = await ending.promise;
    if (fault) throw fault;
  } finally {
    await app.stop();
    ending.dispose();
  }
}

/** Resolves when the service is to end: a signal, or a fault after which it cannot be trusted. */
function endOfService(log: Logger, hasHandlers: boolean) {
  let resolve: (end: { fault?: unknown }) => void = () => {};
  const promise = new Promise<{ fault?: unknown }>((r) => {
    resolve = r;
  });
  let asked = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) {
      log.warn({ signal }, 'second signal: ending at once');
      process.exit(signal === 'SIGINT' ? 130 : 143);
    }
    asked = true;
    log.info({ signal }, 'stopping: what runs may finish within the grace time; a second signal ends it at once');
    resolve({});
  };
  const onRejection = (reason: unknown) => {
    log.error({ err: reason }, 'unhandled rejection');
    // A handler may leave a promise behind; that is its own affair and must not take its neighbours' jobs down.
    if (!hasHandlers) resolve({ fault: reason });
  };
  const onException = (error: unknown) => {
    log.error({ err: error }, 'uncaught exception: stopping');
    resolve({ fault: error });
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  process.on('unhandledRejection', onRejection).on('uncaughtException', onException);
  return {
    promise,
    dispose() {
      process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
      process.off('unhandledRejection', onRejection).off('uncaughtException', onException);
    },
  };
}
