import { stat } from 'node:fs/promises';
import { defineTask, NonRetryableError } from 'waymark';
import { z } from 'zod';
import { type CsvRow, csvRows, FILE_START } from './csv-rows.ts';
import { people, personSchema } from './people.ts';

const COLUMNS = ['name', 'email', 'age'];

/**
 * Imports people from a CSV file of any size. Killed at any moment, it goes on behind the last batch that was saved,
 * and every good row is in the table exactly once. Bad rows are counted and sampled; they stop nothing.
 */
export const csvImport = defineTask({
  name: 'csv.import',
  description: 'Imports people from a CSV file with the columns name, email and age',
  input: z.object({
    /** A path that the worker can read. */
    file: z.string().min(1),
    /** To see retries: every attempt fails once it has imported this many batches. */
    failEvery: z.int().positive().optional(),
  }),
  output: z.object({ rows: z.number(), imported: z.number(), rejected: z.number() }),
  stages: ['read', 'validate', 'import'],
  stallTimeout: '5m',
  async run(ctx, { file, failEvery }) {
    ctx.progress({ stage: 'read', message: `looking at ${file}` });
    const before = await ctx.step('read', () => look(file));

    ctx.progress({ stage: 'validate', current: 0, total: before.bytes, unit: 'bytes' });
    const { rows } = await ctx.step('validate', async ({ signal }) => {
      let rows = 0;
      for await (const { value, cursor } of csvRows(file, FILE_START, { signal })) {
        if (rows === 0) checkHeader(value);
        rows++;
        if (rows % 1_000 === 0) ctx.progress({ stage: 'validate', current: cursor.byte });
      }
      if (rows === 0) throw new NonRetryableError('the file is empty', { code: 'CSV_EMPTY' });
      return { rows: rows - 1 };
    });

    // Byte positions of an earlier attempt mean nothing in another file.
    const now = await look(file);
    if (now.bytes !== before.bytes || now.changedAt !== before.changedAt) {
      throw new NonRetryableError(`${file} was changed while it was imported`, { code: 'FILE_CHANGED' });
    }

    ctx.progress({ stage: 'import', total: rows, unit: 'rows' });
    let batches = 0;
    const { processed, succeeded, failed } = await ctx.batches(
      'import',
      { start: FILE_START, source: (place, s) => dataRows(file, place, s), size: 1_000, total: rows },
      async (batch, { tx }) => {
        if (failEvery !== undefined && batches++ >= failEvery)
          throw new Error(`failing after ${failEvery} batches, as asked`);
        const good: (typeof people.$inferInsert)[] = [];
        const bad: { item: CsvRow; error: string }[] = [];
        for (const row of batch) {
          const [name, email, age] = row.fields;
          const person = personSchema.safeParse({ name, email, age });
          if (person.success && row.fields.length === COLUMNS.length)
            good.push({ job: ctx.job.id, line: row.line, ...person.data });
          else bad.push({ item: row, error: `line ${row.line}: ${reasonOf(row, person.error)}` });
        }
        if (good.length > 0) await tx.insert(people).values(good);
        return { failed: bad };
      },
    );
    return { rows: processed, imported: succeeded, rejected: failed };
  },
});

/** As `csvRows`, without the header. */
async function* dataRows(...[file, place, s]: Parameters<typeof csvRows>) {
  let isHeader = place.byte === 0;
  for await (const row of csvRows(file, place, s)) {
    if (!isHeader) yield row;
    isHeader = false;
  }
}

async function look(file: string): Promise<{ bytes: number; changedAt: number }> {
  try {
    const { size, mtimeMs } = await stat(file);
    return { bytes: size, changedAt: mtimeMs };
  } catch (cause) {
    throw new NonRetryableError(`${file} cannot be read: ${(cause as Error).message}`, {
      code: 'FILE_NOT_FOUND',
      cause,
    });
  }
}

function checkHeader({ fields }: CsvRow): void {
  const names = fields.map((name) => name.trim().toLowerCase());
  if (names.join() !== COLUMNS.join()) {
    throw new NonRetryableError(`the first line must be "${COLUMNS.join(',')}", not "${fields.join(',')}"`, {
      code: 'CSV_HEADER',
    });
  }
}

function reasonOf({ fields }: CsvRow, error: z.ZodError | undefined): string {
  if (fields.length !== COLUMNS.length) return `has ${fields.length} columns and not ${COLUMNS.length}`;
  return (error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}`).join(', ');
}
