import { createRequire } from 'node:module';

/** Version of this package. The file is at the same place seen from `src/` and from `dist/`. */
export const version: string = createRequire(import.meta.url)('../package.json').version;
