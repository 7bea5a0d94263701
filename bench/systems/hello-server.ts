import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSchema, createYoga } from 'graphql-yoga';
import { serveAt } from '../lib/server-protocol.ts';

/** The least that a GraphQL server can do: what an API of the same parts costs before it does anything. */
const schema = createSchema({
  typeDefs: 'type Query { hello: String! }',
  resolvers: { Query: { hello: () => 'world' } },
});
const server = createServer(createYoga({ schema, logging: false }));
server.listen(0, '127.0.0.1', () => {
  serveAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, async () => {});
});
