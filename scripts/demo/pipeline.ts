import { publishArticle } from '../../examples/tasks/publish-article.ts';
import type { Job, JobEvent, JobHandle, WaymarkClient } from '../../src/client/index.ts';
import { colors, display, say } from './frame.ts';

/** Facts of which nobody needs a line here: they are told by others. */
const SILENT: readonly JobEvent['type'][] = ['AttemptEnded', 'JobQueued'];

/** Shows the facts of a job, and those of its children, as they happen, to its end. Gives all of its own, in order. */
export async function showEvents(client: WaymarkClient<unknown>, job: JobHandle): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  const children = new Map<string, Promise<void>>();
  for await (const event of job.events()) {
    events.push(event);
    if (!SILENT.includes(event.type)) line(event.seq, event.state, event.summary);
    if (event.type !== 'JobSuspended' || event.waitingKind !== 'CHILDREN') continue;
    const { jobs } = await client.jobs({ parentId: job.id }, { orderBy: 'CREATED_ASC' });
    for (const child of jobs) if (!children.has(child.id)) children.set(child.id, showChild(client, child));
  }
  await Promise.all(children.values());
  return events;
}

async function showChild(client: WaymarkClient<unknown>, { id, title }: Job): Promise<void> {
  let last = '';
  for await (const job of client.job(id).progress()) {
    const { current, total, unit } = job.progress ?? {};
    const how = current == null ? '' : `, ${current} of ${total} ${unit}`;
    if (job.state + how === last) continue;
    last = job.state + how;
    line('child', job.state, `${title}${how}`);
  }
}

/** Shows the stages of the job as a row, each time it came to another one. */
export async function showStages(job: JobHandle): Promise<void> {
  let furthest = -1;
  for await (const { progress, state } of job.progress()) {
    // Each attempt reports the stages from the first one on: what was reached once is behind it.
    const at = state === 'COMPLETED' ? stages.length : (progress?.stageIndex ?? -1);
    if (at <= furthest) continue;
    furthest = at;
    say(stages.map((name, i) => mark(name, i - at)).join('  '));
  }
}

const stages = publishArticle.definition.stages;

function mark(name: string, distance: number): string {
  if (distance < 0) return colors.green(`✓ ${name}`);
  return distance === 0 ? colors.cyan(`● ${name}`) : colors.dim(`· ${name}`);
}

function line(number: number | 'child', state: string, text: string): void {
  display.finish();
  console.log(`      ${String(number).padStart(5)}  ${state.padEnd(18)}  ${text}`);
}
