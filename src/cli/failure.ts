import { CommanderError } from 'commander';
import { JobCanceledError, JobFailedError, RequestError, WaitTimeoutError } from '../client/index.ts';
import { Unavailable, WaymarkError } from '../core/errors.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

/** What the caller asked for cannot be done, said in one message. */
export class UsageError extends Error {}

/** The exit code of a failure, and what is said about it on stderr (null: it was said already). */
export function failureOf(error: unknown): { code: ExitCode; message: string | null } {
  if (error instanceof CommanderError) return { code: error.exitCode === 0 ? EXIT.done : EXIT.refused, message: null };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof JobFailedError) return { code: EXIT.failed, message };
  if (error instanceof JobCanceledError) return { code: EXIT.canceled, message };
  if (error instanceof WaitTimeoutError) return { code: EXIT.timeout, message };
  if (error instanceof RequestError) {
    if (error.isUnavailable) return { code: EXIT.unreachable, message };
    const details = error.issues.length > 1 ? error.issues.map((i) => `\n  ${i.path}: ${i.message}`).join('') : '';
    const { known } = error.details;
    const hint = Array.isArray(known) && known.length > 0 ? `; known are ${known.join(', ')}` : '';
    return { code: EXIT.refused, message: `${error.code}: ${message}${details}${hint}` };
  }
  if (error instanceof Unavailable) return { code: EXIT.unreachable, message };
  if (error instanceof UsageError || error instanceof WaymarkError) return { code: EXIT.refused, message };
  if (isSystemRefusal(error)) return { code: EXIT.refused, message };
  return { code: EXIT.defect, message: error instanceof Error ? (error.stack ?? message) : message };
}

/** The operating system says no to a setting: the port is taken, the directory cannot be written. */
function isSystemRefusal(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return ['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'ENOSPC'].includes(
    code ?? '',
  );
}
