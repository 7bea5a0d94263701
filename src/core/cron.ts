import { Cron } from 'croner';

/**
 * When schedules run: five fields (minute, hour, day of month, month, day of week) or a nickname such as `@daily`, read
 * in an IANA time zone. The same instants in every process, whatever zone that is in.
 *
 * Where clocks are changed, a schedule that names hours (`30 2 * * *`, `0 8-18/2 * * *`) runs once for each time it
 * names: a time that occurs twice counts when it comes first; times that do not exist are made up for by one run at the
 * first moment after the gap. On a day that a zone leaves out as a whole it does not run. A schedule of every hour
 * (`*` there, `@hourly`) goes by the time that passes: it runs through an hour that comes twice both times, and has
 * nothing to make up for.
 */

const MAX_CRON = 200;
const NICKNAME = /^@[a-z]+$/i;

/** The rule that an expression breaks, or null. */
export function cronProblem(cron: string): string | null {
  if (cron.length > MAX_CRON) return `must not be longer than ${MAX_CRON} characters`;
  const text = cron.trim();
  // The library reads other things as well: seconds, years, and a date for a single run.
  if (!/^[\x21-\x7e ]*$/.test(text) || (!NICKNAME.test(text) && text.split(/ +/).length !== 5)) {
    return 'must have five fields (minute, hour, day of month, month, day of week), or be a nickname such as "@daily"';
  }
  try {
    return parse(cron, 'UTC').nextRun(new Date(0)) === null ? 'names a time that never comes' : null;
  } catch (error) {
    return `is no cron expression: ${(error as Error).message.replace(/^CronPattern: /, '')}`;
  }
}

/** The rule that a time zone breaks, or null. */
export function zoneProblem(zone: string): string | null {
  try {
    // Offsets such as +01:00 are taken by some versions of Node: a schedule must not depend on that.
    if (/^[A-Za-z]/.test(zone) && new Intl.DateTimeFormat('en', { timeZone: zone })) return null;
  } catch {
    // Said below.
  }
  return 'must be a time zone of the IANA database such as "Europe/Berlin", or "UTC"';
}

/** The first run after a moment, in whole minutes; null when none will ever come. Both texts must have been checked. */
export function nextRun(cron: string, zone: string, after: Date): Date | null {
  return parse(cron, zone).nextRun(after);
}

/** The first `count` runs after a moment; fewer when no more will come. */
export function nextRuns(cron: string, zone: string, after: Date, count: number): Date[] {
  return count === 0 ? [] : parse(cron, zone).nextRuns(count, after);
}

function parse(cron: string, zone: string): Cron {
  // A list is "fixed" for the library, and treated as described above; a wildcard or a step is not, so these are written out.
  return new Cron(writtenOut(cron.trim()), {
    timezone: zone,
    mode: '5-part',
    fixedTimeRule: 'no-wildcard',
    paused: true,
  });
}

function writtenOut(cron: string): string {
  if (NICKNAME.test(cron)) return cron;
  const [minute = '', hour = '', ...days] = cron.split(/ +/);
  const hours = valuesOf(hour, 23);
  if (hours.length === 24) return [minute, '*', ...days].join(' ');
  // What cannot be read stays as it is, for the library to say what is wrong with it.
  const minutes = valuesOf(minute, 59);
  return [minutes.join() || minute, hours.join() || hour, ...days].join(' ');
}

/** The numbers that a field names; none when it cannot be read. */
function valuesOf(field: string, max: number): number[] {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = /^(?:([*?])|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part);
    if (!match) return [];
    const [, star, from = '0', to, step] = match;
    // A step behind a single number means different things to different programs.
    if (!star && to === undefined && step !== undefined) return [];
    const [first, last, by] = [Number(from), star ? max : Number(to ?? from), Number(step ?? 1)];
    if (last > max || first > last || by < 1 || by > max + 1) return [];
    for (let value = first; value <= last; value += by) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
}
