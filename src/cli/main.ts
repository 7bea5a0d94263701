#!/usr/bin/env node
import { runProgram } from './program.ts';

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever read along has gone (`waymark start | head -1`): no reason to stop work.
    if (error.code !== 'EPIPE') throw error;
  });
}

// The only place, beside `configFromProcess`, that looks at the process's environment.
const code = await runProgram(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
});
process.exitCode = code;
// A handler that was given up may still hold a timer or a socket; the process does not wait for it.
setTimeout(() => process.exit(code), 200).unref();
