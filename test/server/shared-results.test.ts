import { type ExecutionResult, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga';
import { describe, expect, test } from 'vitest';
import { useSharedResults as sharedResults } from '../../src/server/shared-results.ts';

/** A stream of the values that a test gives, and how often each field was resolved. */
function serviceOf(values: readonly object[]) {
  const resolved = { now: 0, later: 0 };
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { nothing: { type: GraphQLString } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        values: {
          type: new GraphQLObjectType({
            name: 'Value',
            fields: {
              now: {
                type: GraphQLString,
                args: { suffix: { type: GraphQLString } },
                resolve: (value, { suffix }, context) => {
                  resolved.now++;
                  return `${value.text} ${suffix ?? ''} for ${context.caller.actor} at ${context.baseUrl}`;
                },
              },
              later: {
                type: GraphQLString,
                resolve: async (value) => {
                  resolved.later++;
                  return value.text;
                },
              },
            },
          }),
          async *subscribe() {
            yield* values;
          },
          resolve: (value) => value,
        },
      },
    }),
  });
  const yoga = createYoga({ schema, logging: false, plugins: [sharedResults() as Plugin] });

  async function watch(query: string, caller = {}, variables: Record<string, unknown> = {}, baseUrl = 'here') {
    const { parse: parsed, subscribe } = yoga.getEnveloped({} as never);
    const stream = await subscribe({
      schema,
      document: parsed(query),
      variableValues: variables,
      contextValue: { caller: { tenant: 'default', actor: 'user:ada', groups: [], scopes: [], ...caller }, baseUrl },
    });
    if (!isAsyncIterable(stream)) throw new Error(JSON.stringify(stream));
    const results: unknown[] = [];
    for await (const { data, errors } of stream as AsyncIterable<ExecutionResult>) results.push(errors ?? data);
    return results;
  }
  return { watch, resolved };
}

const SUBSCRIBE = 'subscription { values { now } }';

describe('results of streams', () => {
  test('who asks the same of the same value is given the same, computed once', async () => {
    const { watch, resolved } = serviceOf([{ text: 'a' }, { text: 'b' }]);
    const first = await watch(SUBSCRIBE);
    expect(first).toEqual(['a', 'b'].map((text) => ({ values: { now: `${text}  for user:ada at here` } })));
    expect(await watch(SUBSCRIBE)).toEqual(first);
    expect(resolved.now).toBe(2);
  });

  test('equal values that are not one are each computed', async () => {
    const { watch, resolved } = serviceOf([{ text: 'a' }, { text: 'a' }]);
    await watch(SUBSCRIBE);
    expect(resolved.now).toBe(2);
  });

  test.each([
    ['another actor', { actor: 'user:bob' }, undefined, 'user:bob'],
    ['another tenant', { tenant: 'other' }, undefined, 'user:ada'],
    ['other groups', { groups: ['editors'] }, undefined, 'user:ada'],
    ['other scopes', { scopes: ['jobs:read'] }, undefined, 'user:ada'],
    ['another address', {}, 'there', 'at there'],
  ])('%s has a result of its own', async (_, caller, baseUrl, told) => {
    const { watch, resolved } = serviceOf([{ text: 'a' }]);
    await watch(SUBSCRIBE);
    const [result] = await watch(SUBSCRIBE, caller, {}, baseUrl);
    expect(JSON.stringify(result)).toContain(told);
    expect(resolved.now).toBe(2);
  });

  test('another document, operation or variable is another question', async () => {
    const { watch, resolved } = serviceOf([{ text: 'a' }]);
    const withVariable = 'subscription ($suffix: String) { values { now(suffix: $suffix) } }';
    expect(await watch(withVariable, {}, { suffix: '1' })).toEqual([{ values: { now: 'a 1 for user:ada at here' } }]);
    expect(await watch(withVariable, {}, { suffix: '2' })).toEqual([{ values: { now: 'a 2 for user:ada at here' } }]);
    expect(await watch('subscription { values { other: now } }')).toEqual([
      { values: { other: 'a  for user:ada at here' } },
    ]);
    expect(resolved.now).toBe(3);
  });

  test('what is read while a result is made is not shared: each caller has it as it is then', async () => {
    const { watch, resolved } = serviceOf([{ text: 'a' }]);
    const query = 'subscription { values { now later } }';
    await Promise.all([watch(query), watch(query)]);
    expect(resolved).toEqual({ now: 2, later: 2 });
  });
});
