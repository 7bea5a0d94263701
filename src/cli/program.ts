import { Command } from 'commander';
import { version } from '../version.ts';
import { addCancel, addRetry } from './commands/act.ts';
import { addApprovals, addApprove, addReject } from './commands/approvals.ts';
import { addJobs } from './commands/jobs.ts';
import { addMigrate } from './commands/migrate.ts';
import { addPause, addQueues, addResume } from './commands/queues.ts';
import { addSchema } from './commands/schema.ts';
import { addApi, addStart, addWorker } from './commands/services.ts';
import { addShow } from './commands/show.ts';
import { addSubmit } from './commands/submit.ts';
import { addWatch } from './commands/watch.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { failureOf } from './failure.ts';
import { colorsFor, type Io } from './io.ts';

const EXIT_HELP = `
Exit codes: 0 done, 1 the job FAILED, 2 refused input or usage, 3 the job was CANCELED, 4 --timeout reached,
69 service unreachable.`;

/** Runs one command line. Never throws: what went wrong is said on stderr and is the exit code. */
export async function runProgram(args: readonly string[], io: Io): Promise<ExitCode> {
  const program = new Command('waymark')
    .description('A durable job service: jobs that never lose their place.')
    .version(version)
    .addHelpText('after', EXIT_HELP)
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text) })
    .exitOverride()
    .showHelpAfterError('(see waymark --help)');
  for (const add of [addStart, addApi, addWorker, addMigrate]) add(program, io);
  for (const add of [addSubmit, addWatch, addShow, addJobs, addCancel, addRetry, addSchema]) add(program, io);
  for (const add of [addApprovals, addApprove, addReject]) add(program, io);
  for (const add of [addQueues, addPause, addResume]) add(program, io);
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    const { code, message } = failureOf(error);
    if (message !== null) io.stderr.write(`${colorsFor(io.stderr, io.env).red('waymark:')} ${message}\n`);
    return code;
  }
}
