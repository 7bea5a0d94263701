import type { Command } from 'commander';
import { parseConfig } from '../../config.ts';
import type { Io } from '../io.ts';
import { createLog } from '../log.ts';

/** `waymark migrate`: brings the database up to date and ends. On one that is, it changes nothing. */
export function addMigrate(program: Command, io: Io): void {
  program
    .command('migrate')
    .summary('brings the database up to date and exits')
    .description('Brings the database of DATABASE_URL (else the embedded one) up to date and exits.')
    .action(async () => {
      const config = parseConfig(io.env);
      const { migrateOnce } = await import('../../app.ts');
      await migrateOnce(config, createLog(config, io));
    });
}
