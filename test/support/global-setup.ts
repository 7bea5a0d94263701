import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/open.ts';
import type { Service } from './local-servers.ts';
import { findServices } from './services.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** `template` is a migrated database that nobody is connected to; databases of this run start with `prefix`. */
    postgres: { url: string; template: string; prefix: string } | { missing: string };
    redis: { url: string } | { missing: string };
  }
}

/** Finds the services for all test files, and at the end takes away what this run made. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await findServices(process.env);
  const missing = Object.values(services).flatMap((s) => ('missing' in s ? [s.missing] : []));
  if (missing.length > 0) {
    if (process.env.CI === 'true') throw new Error(`tests need Postgres and Redis: ${missing.join('; ')}`);
    console.warn(`Suites that need a server are skipped: ${missing.join('; ')}`);
  }
  const prefix = `waymark_test_${randomBytes(4).toString('hex')}_`;
  const template = `${prefix}template`;

  const { postgres: pg, redis } = services;
  if (!('missing' in pg)) await createTemplate(pg.url, template);
  project.provide('postgres', 'missing' in pg ? pg : { url: pg.url, template, prefix });
  project.provide('redis', 'missing' in redis ? redis : { url: redis.url });

  return async () => {
    if (!('missing' in pg)) await dropDatabases(pg, prefix);
    for (const service of [pg, redis]) if (!('missing' in service)) await service.stop();
  };
}

async function createTemplate(url: string, name: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`create database ${name}`).finally(() => sql.end());
  const database = await openDatabase({ url: Object.assign(new URL(url), { pathname: `/${name}` }).href });
  await migrate(database.maintenance).finally(() => database.close());
}

async function dropDatabases({ url }: Service, prefix: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const made = await sql<{ datname: string }[]>`select datname from pg_database where starts_with(datname, ${prefix})`;
  for (const { datname } of made) await sql.unsafe(`drop database if exists ${datname} with (force)`);
  await sql.end();
}
