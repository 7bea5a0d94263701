import { lexicographicSortSchema, printSchema } from 'graphql';
import { schema } from './index.ts';

/** The schema as SDL, sorted, with descriptions: what `schema.graphql` holds. */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
