import { setTimeout as sleep } from 'node:timers/promises';
import type { PostgresServer } from '../cluster/postgres-server.ts';
import type { RedisServer } from '../cluster/redis-server.ts';
import type { Seen } from './fault-record.ts';

/** Ends a store by a signal; it comes back after a while. */
export async function killStore(
  store: PostgresServer | RedisServer,
  signal: NodeJS.Signals,
  awayMs: number,
): Promise<Seen> {
  const by = await store.kill(signal);
  await sleep(awayMs);
  await store.start();
  return { observed: by !== null, detail: `ended with ${by} after ${signal}` };
}

/** Ends the sessions of all clients but the one that asks. */
export async function terminateBackends(postgres: PostgresServer): Promise<Seen> {
  const [row] = await postgres.ask(
    (sql) => sql<{ n: number }[]>`
      select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  const n = row?.n ?? 0;
  return { observed: n > 0, detail: `${n} sessions ended` };
}

/** `CLIENT KILL TYPE …` */
export async function dropRedisClients(redis: RedisServer, type: 'pubsub' | 'normal'): Promise<Seen> {
  const n = Number(await redis.ask((client) => client.call('CLIENT', 'KILL', 'TYPE', type)));
  return { observed: n > 0, detail: `${n} connections closed` };
}
