import { setImmediate } from 'node:timers/promises';
import { type StandardSchemaV1, validateWith } from '../core/standard-schema.ts';
import type { Attempt } from './attempt.ts';
import type { Ending } from './attempt-end.ts';
import type { HandlerContext } from './context.ts';

/** Check of the input, handler, check of the output: all within the attempt's limits. Never rejects. */
export async function runHandler(attempt: Attempt, ctx: HandlerContext): Promise<Ending> {
  const { task, job } = attempt;
  // All jobs of a claim are taken note of before the first handler runs: it may block the loop.
  await setImmediate();
  try {
    const input = await checked(task.inputSchema, job.hasInput ? job.input : undefined, 'input');
    if (!input.ok) return { kind: 'refused', code: 'INVALID_INPUT', message: input.message };
    if (attempt.signal.aborted) throw attempt.signal.reason;
    const output = await checked(task.outputSchema, await task.run(ctx as never, input.value), 'output');
    if (!output.ok) return { kind: 'refused', code: 'INVALID_OUTPUT', message: output.message };
    return { kind: 'returned', value: output.value };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

/** The value as the schema gives it, or one line that names each field and its rule. */
async function checked(
  schema: StandardSchemaV1 | undefined,
  value: unknown,
  path: string,
): Promise<{ ok: true; value: unknown } | { ok: false; message: string }> {
  if (!schema) return { ok: true, value };
  const result = await validateWith(schema, value, path);
  if (result.ok) return result;
  return { ok: false, message: result.issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ') };
}
