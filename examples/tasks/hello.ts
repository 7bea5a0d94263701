import { defineTask } from 'waymark';
import { z } from 'zod';

/** The smallest task: an input, an answer. */
export const hello = defineTask({
  name: 'hello',
  description: 'Greets somebody',
  input: z.object({ name: z.string().min(1).default('world') }).default({ name: 'world' }),
  run(ctx, { name }) {
    ctx.log.info('greeting', { name });
    return { greeting: `Hello, ${name}!` };
  },
});
