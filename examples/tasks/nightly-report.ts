import { avg, count } from 'drizzle-orm';
import { defineTask } from 'waymark';
import { z } from 'zod';
import { people } from './people.ts';

/** A report that a schedule asks for every night: `examples/nightly.ts` shows how to save that. */
export const nightlyReport = defineTask({
  name: 'report.nightly',
  description: 'Reports on the imported people, as a CSV file',
  input: z.object({ title: z.string().min(1).max(100).default('People') }),
  output: z.object({ day: z.string(), rows: z.number(), file: z.string() }),
  stages: ['collect', 'write'],
  maxAttempts: 3,
  timeout: '10m',
  async run(ctx, { title }) {
    // The day it was asked for, also when an attempt runs after midnight.
    const day = ctx.job.createdAt.toISOString().slice(0, 10);
    ctx.progress({ stage: 'collect', message: day });
    const totals = await ctx.step('collect', async () => {
      const [row] = await ctx.db.select({ rows: count(), age: avg(people.age) }).from(people);
      return { rows: row?.rows ?? 0, age: Number(row?.age ?? 0) };
    });

    ctx.progress({ stage: 'write' });
    const file = await ctx.step('write', async () => {
      const lines = [
        'day,title,rows,mean age',
        `${day},"${title.replaceAll('"', '""')}",${totals.rows},${totals.age.toFixed(1)}`,
      ];
      const { name } = await ctx.artifact(`report-${day}.csv`, `${lines.join('\n')}\n`, { mediaType: 'text/csv' });
      return name;
    });
    return { day, rows: totals.rows, file };
  },
});
