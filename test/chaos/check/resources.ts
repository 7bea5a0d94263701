import { eventually } from '../../support/eventually.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { openFiles } from '../cluster/service.ts';
import type { Resource } from './history.ts';

type Measured = ReadonlyMap<string, number>;

/** Connections that the pools of one process may hold together. */
const POOLED = 31;
/** Descriptors that come and go: listening, logs, clients that keep a connection. */
const SPARE_FILES = 20;
/** What is no longer needed is given back within this time. */
const SETTLE_MS = 20_000;

/** What the cluster holds now. */
export async function measure(cluster: Cluster): Promise<Measured> {
  const measured = new Map<string, number>();
  const [row] = await cluster.postgres.ask(
    (sql) => sql<{ n: number }[]>`
      select count(*)::int as n from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  measured.set('sessions of Postgres', row?.n ?? 0);
  const channels = (await cluster.redis.ask((redis) => redis.call('PUBSUB', 'CHANNELS'))) as string[];
  measured.set('channels of Redis', channels.length);
  for (const service of cluster.services.values()) {
    const files = await openFiles(service.life.pid);
    if (files !== null) measured.set(`open files of ${service.name}`, files);
  }
  return measured;
}

/** What the cluster holds after a round, against what it held before. Waits a while for what is being given back. */
export async function compare(cluster: Cluster, before: Measured): Promise<Resource[]> {
  let resources: Resource[] = [];
  await eventually(
    async () => {
      const after = await measure(cluster);
      resources = [...after].map(([what, now]) => {
        const then = before.get(what) ?? 0;
        return { what, before: then, after: now, most: bound(what, then, cluster.services.size) };
      });
      if (resources.some((r) => r.after > r.most)) throw new Error('not yet');
    },
    { timeoutMs: SETTLE_MS, intervalMs: 500 },
  ).catch(() => {});
  return resources;
}

function bound(what: string, before: number, processes: number): number {
  if (what.startsWith('sessions')) return processes * POOLED;
  // Each worker has one of its own, whatever its id is by now.
  if (what.startsWith('channels')) return before;
  return before + POOLED + SPARE_FILES;
}
