import { sql } from 'drizzle-orm';
import { pgSchema, timestamp } from 'drizzle-orm/pg-core';

/**
 * Waymark's tables, all in the schema `waymark`, so that users can share the database. What a state change rewrites
 * is kept apart from what never changes: a change re-enters every index of its row. No foreign keys between the large
 * tables; the pruner owns integrity. JSON columns are `json`, not `jsonb`: a value must come back exactly as it was given.
 */
export const waymark = pgSchema('waymark');

export const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
export const list = (values: readonly string[]) => sql.raw(values.map((v) => `'${v}'`).join(', '));
