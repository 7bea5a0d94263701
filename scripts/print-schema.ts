import { writeFileSync } from 'node:fs';
import { printedSchema } from '../src/schema/print.ts';

// Writes the SDL that the package and the tests go by: node --conditions=waymark-source --import=tsx scripts/print-schema.ts
writeFileSync(new URL('../schema.graphql', import.meta.url), printedSchema());
