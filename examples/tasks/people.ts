import { sql } from 'drizzle-orm';
import { bigserial, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { UserDb } from 'waymark';
import { z } from 'zod';

/**
 * A table of the application's own, in the same database as the jobs: so its rows can be written in one commit with a
 * checkpoint. It has no unique constraint over (job, line) on purpose: that each row comes exactly once is `ctx.batches`'
 * doing, and the demo counts them.
 */
export const people = pgTable('people', {
  id: bigserial({ mode: 'number' }).primaryKey(),
  job: text().notNull(),
  line: integer().notNull(),
  name: text().notNull(),
  email: text().notNull(),
  age: integer().notNull(),
});

/** Runs at each start of a worker, under a lock that all processes share: it must do no harm when run again. */
export async function createPeopleTable({ db }: { db: UserDb }): Promise<void> {
  await db.execute(sql`
    create table if not exists people (
      id bigserial primary key,
      job text not null,
      line integer not null,
      name text not null,
      email text not null,
      age integer not null
    )`);
  await db.execute(sql`create index if not exists people_job on people (job)`);
}

/** What a row must be. */
export const personSchema = z.object({
  name: z.string().trim().min(1, 'is missing').max(200, 'is longer than 200 characters'),
  email: z.email('is no address'),
  age: z
    .string()
    .regex(/^\d{1,3}$/, 'is no whole number')
    .transform(Number)
    .refine((age) => age <= 130, 'is above 130'),
});
