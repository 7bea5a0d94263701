import type * as Waymark from '../../src/index.ts';

const built = new URL('../../dist/index.js', import.meta.url).href;

/** Waymark as users run it: built (`npm run build`), as the peers are. */
export const { createWaymark, defineTask } = (await import(built)) as typeof Waymark;
