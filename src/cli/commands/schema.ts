import type { Command } from 'commander';
import type { Io } from '../io.ts';

/** `waymark schema`: the API's schema as SDL. Needs no service. */
export function addSchema(program: Command, io: Io): void {
  program
    .command('schema')
    .summary("prints the API's schema")
    .description('Prints the GraphQL schema of the API as SDL.')
    .action(async () => {
      const { printedSchema } = await import('../../schema/print.ts');
      io.stdout.write(printedSchema());
    });
}
