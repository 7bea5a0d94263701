import { setTimeout as pause } from 'node:timers/promises';
import { defineTask } from 'waymark';
import { z } from 'zod';

/** To see it live: how much longer each piece of work is to take, in milliseconds. */
const pace = z.int().min(0).max(60_000).default(0);

/** Draws one image of an article. A job of its own: it is retried, shown and canceled by itself. */
export const drawImage = defineTask({
  name: 'article.image',
  description: 'Draws an image of an article, as SVG',
  input: z.object({ caption: z.string(), hue: z.int().min(0).max(359), pace }),
  output: z.object({ file: z.string(), sha256: z.string() }),
  timeout: '2m',
  async run(ctx, { caption, hue, pace }) {
    const shapes: string[] = [];
    for (let n = 1; n <= 4; n++) {
      await pause(pace / 4, undefined, { signal: ctx.signal });
      shapes.push(`<circle cx="${n * 40}" cy="60" r="${n * 8}" fill="hsl(${hue} 70% ${20 + n * 12}%)"/>`);
      ctx.progress({ current: n, total: 4, unit: 'shapes' });
    }
    const title = caption.replace(/[<&]/g, (c) => (c === '<' ? '&lt;' : '&amp;'));
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="120"><title>${title}</title>${shapes.join('')}</svg>`;
    const { name, sha256 } = await ctx.artifact('image.svg', svg, { mediaType: 'image/svg+xml' });
    return { file: name, sha256 };
  },
});

/** What an editor fills in. Its JSON Schema is the form that dashboards show and the command line suggests. */
const review = z.object({
  headline: z.string().min(1).max(120),
  /** Not before this moment; at once when left out. */
  publishAt: z.iso.datetime().optional(),
});

/**
 * An article from its material to its readers. It waits days for the editor without holding a slot of a worker, and no
 * restart makes it forget, or do again, what is done.
 */
export const publishArticle = defineTask({
  name: 'article.publish',
  description: 'Writes an article, has it reviewed by an editor, and publishes it',
  input: z.object({
    topic: z.string().min(1).max(150),
    /** Who may decide, such as `user:ada` or `group:editors`; anybody when left out. Groups need authentication. */
    approvers: z.array(z.string()).default([]),
    pace,
  }),
  output: z.object({ url: z.string(), headline: z.string(), approvedBy: z.string(), images: z.array(z.string()) }),
  stages: ['gather', 'draft', 'images', 'review', 'publish', 'notify'],
  async run(ctx, { topic, approvers, pace }) {
    // On every attempt the handler runs from the top; what has a checkpoint returns at once what it returned before.
    ctx.progress({ stage: 'gather', message: topic });
    const notes = await ctx.step('gather', async ({ signal }) => {
      await pause(pace, undefined, { signal });
      return ['where it comes from', 'how it is done', 'what may go wrong'].map((aspect) => `${topic}: ${aspect}`);
    });

    ctx.progress({ stage: 'draft' });
    const draft = await ctx.step('draft', async ({ signal }) => {
      await pause(pace, undefined, { signal });
      const text = [`# ${topic}`, ...notes.map((note) => `## ${note}\n\nA paragraph about it.`)].join('\n\n');
      const { sha256 } = await ctx.artifact('draft.md', text, { mediaType: 'text/markdown' });
      return { text, sha256 };
    });

    ctx.progress({ stage: 'images' });
    // Both at once, each a job of its own; this one comes back when they have ended.
    const images = await ctx.children('images', [
      { task: drawImage, input: { caption: topic, hue: 200, pace }, title: 'Image: the large one' },
      { task: drawImage, input: { caption: `${topic}, in detail`, hue: 20, pace }, title: 'Image: the small one' },
    ]);

    ctx.progress({ stage: 'review', message: 'an editor has to decide' });
    const { data, by } = await ctx.approval('editor', {
      title: `Publish "${topic}"?`,
      body: draft.text,
      schema: review,
      approvers,
      expiresIn: '7d',
      // In place of the line in the log: a mail, or a message to a chat.
      notify: ({ id, url }) => ctx.log.info('an editor is asked', { id, url }),
    });

    if (data.publishAt !== undefined) {
      await ctx.sleep('publish at', Math.max(0, Date.parse(data.publishAt) - Date.now()));
    }
    ctx.progress({ stage: 'publish', message: data.headline });
    const url = await ctx.step('publish', async ({ signal, idempotencyKey }) => {
      await pause(pace, undefined, { signal });
      const page = draft.text.replace(/^# .*/, `# ${data.headline}`);
      await ctx.artifact('article.md', page, { mediaType: 'text/markdown' });
      // The key tells a repetition from a second article, should this be killed before its checkpoint is saved.
      return `https://example.com/articles/${idempotencyKey.slice(-12)}`;
    });

    ctx.progress({ stage: 'notify' });
    await ctx.step('notify', () => ctx.log.info('readers are told', { url, headline: data.headline }));
    return { url, headline: data.headline, approvedBy: by, images: images.map(({ sha256 }) => sha256) };
  },
});
