import type { DBOSConfig } from '@dbos-inc/dbos-sdk';

export const NOOP = 'noop';
export const STEPPED = 'stepped';
export const QUEUE = 'bench';

/** The best of the settings tried (README.md says which). */
export const WORK = { workerConcurrency: 100, minPollingIntervalMs: 1 };

/** It tells of every start; here as with the others only trouble is of interest. */
export const logger = {
  info() {},
  debug() {},
  warn: (message: unknown) => console.error(message),
  error: (message: unknown) => console.error(message),
};

/** Both sides are one application; the version says so, else it is made from the code of the workflows. */
export const config = (systemDatabaseUrl: string): DBOSConfig => ({
  name: 'bench',
  systemDatabaseUrl,
  applicationVersion: '1',
  logger,
});
