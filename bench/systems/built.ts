import type * as Client from '../../src/client/index.ts';
import type * as Waymark from '../../src/index.ts';

const built = (path: string) => new URL(`../../dist/${path}`, import.meta.url).href;

/** Waymark as users run it: built (`npm run build`), as the peers are. */
export const { createWaymark, defineTask } = (await import(built('index.js'))) as typeof Waymark;

/** Its client, for the benchmarks that look from there. */
export const { createClient } = (await import(built('client/index.js'))) as typeof Client;
