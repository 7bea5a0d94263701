/** Knobs of the processes under test, in milliseconds. */
export const HEARTBEAT_MS = 500;
export const LEASE_MS = 3_000;
export const SWEEP_MS = 1_000;
export const POLL_MS = 1_000;
export const GRACE_MS = 5_000;

/** A killed worker's job runs elsewhere within this time (P6). */
export const RECOVERY_MS = LEASE_MS + SWEEP_MS + 1_000;
/** An attempt of the longest job that the load has. */
export const LONGEST_MS = 7_000;
/** Jobs handed in per second… */
export const RATE = 8;
/** …unless so many are unfinished: on a machine that cannot keep up everything would be a wait in line. */
export const MOST_UNFINISHED = 40;

/** Settings of every process. */
export const ENV: Readonly<Record<string, string>> = {
  WAYMARK_HEARTBEAT: `${HEARTBEAT_MS}ms`,
  WAYMARK_LEASE: `${LEASE_MS}ms`,
  WAYMARK_SWEEP: `${SWEEP_MS}ms`,
  WAYMARK_POLL: `${POLL_MS}ms`,
  WAYMARK_GRACE: `${GRACE_MS}ms`,
  // More than the load needs, also when a worker is away: else a recovery would be a wait for a slot.
  WAYMARK_CONCURRENCY: '20',
};

export const APIS = ['api1', 'api2'] as const;
export const WORKERS = ['w1', 'w2', 'w3'] as const;
export const STORES = ['postgres', 'redis'] as const;

export type ServiceName = (typeof APIS)[number] | (typeof WORKERS)[number];
export type StoreName = (typeof STORES)[number];
/** The way from one process to one store. */
export type LinkName = `${ServiceName}-${StoreName}`;

export const SERVICES: readonly ServiceName[] = [...APIS, ...WORKERS];
export const LINKS: readonly LinkName[] = SERVICES.flatMap((service) =>
  STORES.map((store) => `${service}-${store}` as const),
);
