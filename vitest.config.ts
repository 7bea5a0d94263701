import { availableParallelism } from 'node:os';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    // graphql 16 has two builds and no `exports`: sources would load one, dependencies the other.
    alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }],
  },
  ssr: { resolve: { conditions: ['waymark-source', ...defaultServerConditions] } },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Trials mostly wait, for leases and outages: two files at once take little more time than one, also on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    maxConcurrency: 3,
    // The first start of an embedded database takes seconds, on a busy machine many; often it is part of a test.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
