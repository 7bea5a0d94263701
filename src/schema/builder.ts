import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import type { Timestamp } from '../core/job.ts';
import type { SchemaContext } from './context.ts';
import { fieldCost } from './cost.ts';

/** The builder and nothing else: types are defined beside their nouns. Fields are non-null unless they say otherwise. */
export const builder = new SchemaBuilder<{
  Context: SchemaContext;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    /** In: UTC with milliseconds. Out: as the store prints it. */
    DateTime: { Input: string; Output: Timestamp };
    JSON: { Input: unknown; Output: unknown };
    /** Milliseconds. */
    Duration: { Input: number; Output: number };
  };
}>({
  plugins: [ComplexityPlugin],
  defaultFieldNullability: false,
  // Costs are only declared here. They are added up before execution starts, for every transport (limits.ts): the
  // plugin itself would look when a subscription has been opened already.
  complexity: { disabled: true, fieldComplexity: fieldCost },
});

builder.queryType({
  description: 'Reading. Everything is as of the moment of the read and within the caller’s tenant.',
});
builder.mutationType({
  description:
    'Acting. Expected failures are members of the result unions; a failed call has changed nothing. Several mutations in one document run one after the other.',
});
builder.subscriptionType({
  description:
    'Watching, over WebSocket (graphql-transport-ws) or server-sent events. The end of a job is a value, not the end of the stream: a stream that completes without a terminal value was cut, subscribe again.',
});
