import { avg, count, countDistinct, desc, sql } from 'drizzle-orm';
import { defineTask } from 'waymark';
import { z } from 'zod';
import { people } from './people.ts';

/** A report over the imported people, in steps: what is done is not done again when a later step fails. */
export const reportBuild = defineTask({
  name: 'report.build',
  description: 'Builds a report over the imported people, in Markdown',
  input: z.object({
    title: z.string().default('People'),
    /** To see retries: attempts up to this one fail in the last step. */
    failAttempts: z.int().min(0).default(0),
  }),
  output: z.object({ markdown: z.string(), deliveryKey: z.string() }),
  stages: ['collect', 'render', 'deliver'],
  timeout: '5m',
  async run(ctx, { title, failAttempts }) {
    ctx.progress({ stage: 'collect', current: 0, total: 2, unit: 'queries' });
    const totals = await ctx.step('totals', async () => {
      const columns = { rows: count(), addresses: countDistinct(people.email), age: avg(people.age) };
      const [row] = await ctx.db.select(columns).from(people);
      return row ?? { rows: 0, addresses: 0, age: null };
    });
    ctx.progress({ stage: 'collect', current: 1 });
    const domains = await ctx.step('domains', () => {
      const domain = sql<string>`split_part(${people.email}, '@', 2)`;
      return ctx.db
        .select({ domain, rows: count() })
        .from(people)
        .groupBy(domain)
        .orderBy(desc(count()), domain)
        .limit(5);
    });

    ctx.progress({ stage: 'render', message: title });
    const markdown = await ctx.step('render', () =>
      [
        `# ${title}`,
        `${totals.rows} rows, ${totals.addresses} addresses, mean age ${Number(totals.age ?? 0).toFixed(1)}`,
        ...domains.map((d) => `- ${d.domain}: ${d.rows}`),
      ].join('\n\n'),
    );

    ctx.progress({ stage: 'deliver' });
    const deliveryKey = await ctx.step(
      'deliver',
      async ({ idempotencyKey }) => {
        if (ctx.job.attempt <= failAttempts) throw new Error('the mail service is away, as asked');
        // Hand the key to the outside service: a repeat of this step is then recognised there.
        ctx.log.info('delivered', { idempotencyKey });
        return idempotencyKey;
      },
      { timeout: '30s', retry: { maxAttempts: 2, delay: '200ms' } },
    );
    return { markdown, deliveryKey };
  },
});
