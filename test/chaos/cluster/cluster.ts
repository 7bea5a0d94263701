import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../../support/install-services.ts';
import { APIS, ENV, LINKS, type LinkName, SERVICES, type ServiceName } from '../settings.ts';
import { Link } from './link.ts';
import { MissingBinaries } from './missing-binaries.ts';
import { steadyPort } from './ports.ts';
import { PostgresServer } from './postgres-server.ts';
import { RedisServer } from './redis-server.ts';
import { Service } from './service.ts';

const TASKS = fileURLToPath(new URL('../load/tasks.ts', import.meta.url));
/** A drain within its grace time, with what a process may wait for stores that do not answer. */
export const STOP_MS = 30_000;

/** Two stores, five processes and a link from each process to each store. */
export interface Cluster {
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  readonly services: ReadonlyMap<ServiceName, Service>;
  readonly links: ReadonlyMap<LinkName, Link>;
  /** Where handlers write down what they did. */
  readonly ledger: string;
  service(name: ServiceName): Service;
  link(name: LinkName): Link;
  /** Ends all processes in good order, then all else. Gives what was not in order. */
  close(): Promise<string[]>;
  /** Ends everything at once. */
  kill(): Promise<void>;
}

/** Starts everything; resolves when every process is ready. @param dir for logs and ledger */
export async function startCluster(dir: string): Promise<Cluster> {
  const { postgres, redis } = await startStores(dir);
  const ledger = join(dir, 'ledger');
  const links = new Map<LinkName, Link>();
  for (const name of LINKS) {
    const target = name.endsWith('postgres') ? postgres.port : redis.port;
    links.set(name, await Link.open(name, target));
  }
  const link = (name: LinkName) => links.get(name) as Link;
  const services = new Map<ServiceName, Service>();
  for (const name of SERVICES) {
    const isApi = (APIS as readonly string[]).includes(name);
    const env = {
      ...ENV,
      DATABASE_URL: postgres.urlBy(link(`${name}-postgres`).port),
      REDIS_URL: redis.urlBy(link(`${name}-redis`).port),
      CHAOS_LEDGER: ledger,
    };
    services.set(name, new Service(name, await steadyPort(), isApi ? ['api'] : ['worker', '--tasks', TASKS], env));
  }
  const all = [...services.values()];

  async function closeRest(): Promise<void> {
    for (const one of links.values()) await one.close();
    await Promise.all([postgres.stop(), redis.stop()]);
  }

  async function close(): Promise<string[]> {
    const ends = await Promise.all(
      all.map(async (service) => {
        const code = await service.close('SIGTERM', STOP_MS).catch(String);
        return code === 0 ? [] : [`${service.name} ended with ${code} after SIGTERM`];
      }),
    );
    await closeRest();
    return ends.flat();
  }

  async function kill(): Promise<void> {
    await Promise.all(all.map((service) => service.close('SIGKILL', STOP_MS).catch(() => {})));
    await closeRest();
  }

  // All at once, on an empty database: migrations are part of the matter.
  for (const service of all) service.start();
  const cluster: Cluster = {
    postgres,
    redis,
    services,
    links,
    ledger,
    service: (name) => services.get(name) as Service,
    link,
    close,
    kill,
  };
  try {
    await Promise.all(all.map((service) => service.ready()));
    return cluster;
  } catch (error) {
    await Promise.all(all.map((service) => service.writeLogs(dir)));
    await kill();
    throw error;
  }
}

/** On a bare machine they are installed first, as for all tests. */
async function startStores(dir: string): Promise<{ postgres: PostgresServer; redis: RedisServer }> {
  const redis = await orInstalled(() => RedisServer.create(join(dir, 'redis.log')));
  try {
    return { redis, postgres: await orInstalled(() => PostgresServer.create(join(dir, 'postgres.log'))) };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

async function orInstalled<T>(create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    if (!(error instanceof MissingBinaries && (await installPackages('postgresql', 'redis-server')))) throw error;
    return create();
  }
}
