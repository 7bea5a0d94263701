import { userInfo } from 'node:os';
import postgres from 'postgres';
import { installPackages } from './install-services.ts';
import { answersPing, type Service, startLocalPostgres, startLocalRedis } from './local-servers.ts';

export interface Services {
  postgres: Service | { missing: string };
  redis: Service | { missing: string };
}

const notOurs = async () => {};

/**
 * Finds a Postgres and a Redis: those of WAYMARK_TEST_DATABASE_URL and WAYMARK_TEST_REDIS_URL, else on the usual ports,
 * else from binaries of this machine, started on free ports, else installed as Debian packages where that is possible.
 */
export async function findServices(env: NodeJS.ProcessEnv): Promise<Services> {
  const [given, redis] = await Promise.all([runningPostgres(env), runningRedis(env)]);
  let services: Services = {
    postgres: given ?? (await startLocalPostgres()),
    redis: redis ?? (await startLocalRedis()),
  };
  const missing = 'missing' in services.postgres || 'missing' in services.redis;
  if (missing && (await installPackages('postgresql', 'redis-server'))) {
    services = {
      postgres: 'missing' in services.postgres ? await startLocalPostgres() : services.postgres,
      redis: 'missing' in services.redis ? await startLocalRedis() : services.redis,
    };
  }
  return services;
}

async function runningPostgres(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const given = env.WAYMARK_TEST_DATABASE_URL;
  if (given !== undefined && given !== '') {
    if (await canCreateDatabases(given)) return { url: given, stop: notOurs };
    throw new Error('WAYMARK_TEST_DATABASE_URL is not a Postgres on which this user may create databases');
  }
  for (const user of new Set(['postgres', 'root', userInfo().username])) {
    const url = `postgres://${user}@127.0.0.1:5432/postgres`;
    if (await canCreateDatabases(url)) return { url, stop: notOurs };
  }
  return undefined;
}

async function canCreateDatabases(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {}, fetch_types: false });
  try {
    const [role] = await sql`
      select rolcreatedb or rolsuper as may, current_setting('server_version_num')::int as version
      from pg_roles where rolname = current_user`;
    return role?.may === true && role.version >= 150_000;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function runningRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const given = env.WAYMARK_TEST_REDIS_URL;
  if (given !== undefined && given !== '') return { url: given, stop: notOurs };
  return (await answersPing('127.0.0.1', 6379)) ? { url: 'redis://127.0.0.1:6379', stop: notOurs } : undefined;
}
