import { type StandardSchemaV1, validateWith } from '../core/standard-schema.ts';
import type { Attempt } from './attempt.ts';
import type { Ending } from './attempt-end.ts';
import type { HandlerContext } from './context.ts';

/**
 * Check of the input, handler, check of the output: all within the attempt's limits. Never rejects.
 * @param load reads what the context must know before the handler runs; null: nothing
 */
export async function runHandler(
  attempt: Attempt,
  ctx: HandlerContext,
  load: (() => Promise<void>) | null,
): Promise<Ending> {
  const { task, job } = attempt;
  // All jobs of a claim are taken note of before the first handler runs: it may block the loop.
  await nextTurn();
  try {
    let input: unknown = job.hasInput ? job.input : undefined;
    if (task.inputSchema) {
      const check = await checked(task.inputSchema, input, 'input');
      if (!check.ok) return { kind: 'refused', code: 'INVALID_INPUT', message: check.message };
      input = check.value;
    }
    if (load !== null) await load();
    attempt.assertNotAborted();
    const output = await task.run(ctx as never, input);
    if (!task.outputSchema) return { kind: 'returned', value: output };
    const check = await checked(task.outputSchema, output, 'output');
    if (!check.ok) return { kind: 'refused', code: 'INVALID_OUTPUT', message: check.message };
    return { kind: 'returned', value: check.value };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

let turn: Promise<void> | null = null;

/** Resolves in the next turn of the event loop, once for all that ask within this one. */
function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = null;
      resolve();
    });
  });
  return turn;
}

/** The value as the schema gives it, or one line that names each field and its rule. */
async function checked(
  schema: StandardSchemaV1,
  value: unknown,
  path: string,
): Promise<{ ok: true; value: unknown } | { ok: false; message: string }> {
  const result = await validateWith(schema, value, path);
  if (result.ok) return result;
  return { ok: false, message: result.issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ') };
}
