import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cronProblem, nextRun, nextRuns, zoneProblem } from '../../src/core/cron.ts';

const runs = (cron: string, zone: string, after: string, count: number) =>
  nextRuns(cron, zone, new Date(after), count).map((run) => run.toISOString().slice(0, 16));

/** Instants are UTC; what a clock on the wall shows stands behind them. */
describe('runs over the changes of the clock', () => {
  test.each<[string, string, string, string[]]>([
    // Berlin, 29 March 2026: 01:00Z, 02:00 becomes 03:00. 25 October: 01:00Z, 03:00 becomes 02:00.
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T00:00Z', ['03-28T01:30', '03-29T01:00', '03-30T00:30']],
    ['Europe/Berlin', '*/20 2 * * *', '2026-03-28T12:00Z', ['03-29T01:00', '03-30T00:00', '03-30T00:20']],
    ['Europe/Berlin', '0 2,3 * * *', '2026-03-28T12:00Z', ['03-29T01:00', '03-30T00:00', '03-30T01:00']],
    ['Europe/Berlin', '30 2,3 * * *', '2026-03-28T12:00Z', ['03-29T01:00', '03-29T01:30', '03-30T00:30']],
    ['Europe/Berlin', '0 */2 * * *', '2026-03-28T22:30Z', ['03-28T23:00', '03-29T01:00', '03-29T02:00']],
    ['Europe/Berlin', '*/30 * * * *', '2026-03-29T00:10Z', ['03-29T00:30', '03-29T01:00', '03-29T01:30']],
    ['Europe/Berlin', '@hourly', '2026-03-28T23:30Z', ['03-29T00:00', '03-29T01:00', '03-29T02:00']],
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['10-25T00:30', '10-26T01:30', '10-27T01:30']],
    ['Europe/Berlin', '*/30 2 * * *', '2026-10-24T12:00Z', ['10-25T00:00', '10-25T00:30', '10-26T01:00']],
    ['Europe/Berlin', '0 */2 * * *', '2026-10-24T21:00Z', ['10-24T22:00', '10-25T00:00', '10-25T03:00']],
    ['Europe/Berlin', '0 * * * *', '2026-10-24T23:30Z', ['10-25T00:00', '10-25T01:00', '10-25T02:00']],
    ['Europe/Berlin', '0 0-23 * * *', '2026-10-24T23:30Z', ['10-25T00:00', '10-25T01:00', '10-25T02:00']],
    ['Europe/Berlin', '30 2 * * *', '2026-10-25T00:30Z', ['10-26T01:30', '10-27T01:30']],
    ['Europe/Berlin', '30 2 * * *', '2026-10-25T01:15Z', ['10-26T01:30', '10-27T01:30']],
    // New York, 8 March 2026: 07:00Z, 02:00 becomes 03:00. 1 November: 06:00Z, 02:00 becomes 01:00.
    ['America/New_York', '0 2 * * *', '2026-03-07T12:00Z', ['03-08T07:00', '03-09T06:00', '03-10T06:00']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', ['11-01T05:30', '11-02T06:30', '11-03T06:30']],
    ['America/New_York', '@daily', '2026-10-31T12:00Z', ['11-01T04:00', '11-02T05:00', '11-03T05:00']],
    // Lord Howe moves by half an hour. 4 October 2026: 15:30Z of the 3rd, 02:00 becomes 02:30. 5 April: 15:00Z of the 4th, back.
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-02T12:00Z', ['10-02T15:45', '10-03T15:30', '10-04T15:15']],
    ['Australia/Lord_Howe', '45 2 * * *', '2026-10-02T12:00Z', ['10-02T16:15', '10-03T15:45', '10-04T15:45']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-03T00:00Z', ['04-03T14:45', '04-04T14:45', '04-05T15:15']],
    ['Australia/Lord_Howe', '0 * * * *', '2026-10-03T14:15Z', ['10-03T14:30', '10-03T16:00', '10-03T17:00']],
    // Kolkata keeps its clock.
    ['Asia/Kolkata', '30 2 * * *', '2026-03-28T00:00Z', ['03-28T21:00', '03-29T21:00', '03-30T21:00']],
    ['Asia/Kolkata', '*/30 * * * *', '2026-10-25T00:45Z', ['10-25T01:00', '10-25T01:30', '10-25T02:00']],
    // Apia left out 30 December 2011.
    ['Pacific/Apia', '0 12 * * *', '2011-12-28T00:00Z', ['12-28T22:00', '12-29T22:00', '12-30T22:00']],
  ])('%s: %s after %s', (zone, cron, after, expected) => {
    expect(runs(cron, zone, after, expected.length)).toEqual(expected.map((run) => `${after.slice(0, 5)}${run}`));
  });

  test.each(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Pacific/Apia', 'UTC'])(
    'in %s a daily schedule runs once on every day of ten years, at any minute of the night',
    (zone) => {
      const day = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short' });
      for (const cron of ['0 0 * * *', '30 1 * * *', '0 2 * * *', '15 2 * * *', '59 2 * * *', '0 3 * * *']) {
        const days = nextRuns(cron, zone, new Date('2012-06-01T00:00Z'), 3_650).map((run) => day.format(run));
        expect(new Set(days).size).toBe(days.length);
        const [first = '', last = ''] = [days[0], days.at(-1)];
        expect((Date.parse(last) - Date.parse(first)) / 86_400_000 + 1).toBe(days.length);
      }
    },
  );
});

describe('any schedule', () => {
  const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Africa/Cairo'];
  /** Near changes of the clock in one of the zones, and anywhere. */
  const moment = fc.oneof(
    fc
      .tuple(
        fc.constantFrom('2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-03-08T07:00Z', '2026-11-01T06:00Z'),
        fc.integer({ min: -36 * 60, max: 6 * 60 }),
      )
      .map(([at, minutes]) => Date.parse(at) + minutes * 60_000),
    fc.constantFrom('2026-10-03T10:00Z', '2026-04-04T12:00Z', '2026-04-23T20:00Z', '2026-10-29T18:00Z').map(Date.parse),
    fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2035-01-01') }),
  );
  const field = (min: number, max: number) => {
    const value = fc.integer({ min, max });
    const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    return fc.oneof(
      { arbitrary: fc.constant('*'), weight: 3 },
      value.map(String),
      range.map(([a, b]) => `${a}-${b}`),
      fc.integer({ min: 2, max: Math.max(2, Math.floor(max / 2)) }).map((n) => `*/${n}`),
      fc.tuple(range, fc.integer({ min: 1, max: 7 })).map(([[a, b], n]) => `${a}-${b}/${n}`),
      fc.uniqueArray(value, { minLength: 2, maxLength: 4 }).map((list) => list.join(',')),
    );
  };
  const often = fc.tuple(field(0, 59), field(0, 23)).map(([minute, hour]) => `${minute} ${hour} * * *`);
  const seldom = fc
    .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
    .map((fields) => fields.join(' '));

  test('comes after the moment asked about, then ever later, at the times it names', () => {
    fc.assert(
      fc.property(fc.oneof(often, seldom), fc.constantFrom(...ZONES), moment, (cron, zone, at) => {
        let last = at;
        for (const run of nextRuns(cron, zone, new Date(at), 5)) {
          expect(run.getTime()).toBeGreaterThan(last);
          expect(run.getTime() % 60_000).toBe(0);
          expect(nextRun(cron, zone, new Date(last))).toEqual(run);
          expect(nextRun(cron, zone, new Date(run.getTime() - 1))).toEqual(run);
          if (!named(cron, wall(zone, run.getTime()))) expect(skipped(cron, zone, run.getTime())).toBe(true);
          last = run.getTime();
        }
      }),
      { numRuns: 400 },
    );
  });

  test('leaves out nothing and does nothing twice, minute by minute over two days', () => {
    fc.assert(
      fc.property(often, fc.constantFrom(...ZONES), moment, (cron, zone, at) => {
        const from = Math.floor(at / 60_000) * 60_000;
        const expected: number[] = [];
        for (let minute = from + 60_000; minute <= from + 2 * 86_400_000; minute += 60_000) {
          const fits = named(cron, wall(zone, minute)) && (everyHour(cron) || !repeated(zone, minute));
          if (fits || (!everyHour(cron) && skipped(cron, zone, minute))) expected.push(minute);
        }
        const found = nextRuns(cron, zone, new Date(from), expected.length + 1).map((run) => run.getTime());
        expect(found.slice(0, expected.length)).toEqual(expected);
        expect(found.at(-1) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(from + 2 * 86_400_000);
      }),
      { numRuns: 60 },
    );
  }, 60_000);

  /** A second reading of the rules, from the clock on the wall. */
  interface Wall {
    minute: number;
    hour: number;
    day: number;
    month: number;
    weekday: number;
    text: string;
  }
  const formats = new Map<string, Intl.DateTimeFormat>();
  function wall(zone: string, at: number): Wall {
    let format = formats.get(zone);
    if (!format) {
      format = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
      formats.set(zone, format);
    }
    return fromText(format.format(at));
  }
  function fromText(text: string): Wall {
    const date = new Date(`${text.replace(' ', 'T')}Z`);
    return {
      minute: date.getUTCMinutes(),
      hour: date.getUTCHours(),
      day: date.getUTCDate(),
      month: date.getUTCMonth() + 1,
      weekday: date.getUTCDay(),
      text,
    };
  }
  function inField(field: string, value: number): boolean {
    return field.split(',').some((part) => {
      const [range = '', step = '1'] = part.split('/');
      const [from = 0, to = from] = range === '*' ? [0, 99] : range.split('-').map(Number);
      return value >= from && value <= to && (value - from) % Number(step) === 0;
    });
  }
  function named(cron: string, at: Wall): boolean {
    const [minute = '', hour = '', day = '', month = '', weekday = ''] = cron.split(' ');
    const days = day.startsWith('*/') ? inField(`1-31/${day.slice(2)}`, at.day) : inField(day, at.day);
    const months = month.startsWith('*/') ? inField(`1-12/${month.slice(2)}`, at.month) : inField(month, at.month);
    const fits = inField(weekday, at.weekday);
    // Both given: either will do.
    const date = day === '*' || weekday === '*' ? days && fits : days || fits;
    return inField(minute, at.minute) && inField(hour, at.hour) && months && date;
  }
  const everyHour = (cron: string) => {
    const hour = cron.split(' ')[1] ?? '';
    return Array.from({ length: 24 }, (_, h) => h).every((h) => inField(hour, h));
  };
  const repeated = (zone: string, at: number) =>
    [30, 60].some((minutes) => wall(zone, at - minutes * 60_000).text === wall(zone, at).text);
  /** Whether the clock jumped to this minute over a time that is named. */
  function skipped(cron: string, zone: string, at: number): boolean {
    const [before, here] = [wall(zone, at - 60_000).text, wall(zone, at).text];
    const [from, to] = [before, here].map((text) => Date.parse(`${text.replace(' ', 'T')}Z`)) as [number, number];
    for (let t = from + 60_000; t < to; t += 60_000) {
      if (named(cron, fromText(new Date(t).toISOString().slice(0, 16).replace('T', ' ')))) return true;
    }
    return false;
  }
});

describe('what is refused', () => {
  test.each([
    ['', 'five fields'],
    ['* * * *', 'five fields'],
    ['0 * * * * *', 'five fields'],
    ['2030-01-01T00:00:00', 'five fields'],
    ['0\n0 * * *', 'five fields'],
    ['61 * * * *', 'minute: 61'],
    ['0 24 * * *', 'hour: 24'],
    ['0 0 * * 8', 'dayOfWeek: 8'],
    ['a b c d e', 'illegal characters'],
    ['5/5 * * * *', 'stepping'],
    ['*/0 * * * *', 'no cron expression'],
    ['0 5-2 * * *', 'no cron expression'],
    ['@reboot', 'no cron expression'],
    ['@sometimes', 'no cron expression'],
    ['0 0 30 2 *', 'never comes'],
    [`0 0 * * ${'1,'.repeat(200)}1`, 'longer than 200'],
  ])('%j', (cron, rule) => {
    expect(cronProblem(cron)).toContain(rule);
  });
  test.each([
    '* * * * *',
    ' 0  0 * * * ',
    '@daily',
    '@Hourly',
    '0 0 L * *',
    '0 12 1 * +MON',
    '0 0 * * FRI#2',
    '0 0 29 2 *',
  ])('%j is taken', (cron) => {
    expect(cronProblem(cron)).toBeNull();
    expect(nextRun(cron, 'Europe/Berlin', new Date())).toBeInstanceOf(Date);
  });
  test.each(['', '+01:00', 'Berlin', 'Europe/Nowhere', 'local', 'Europe/Berlin\n'])('the zone %j', (zone) => {
    expect(zoneProblem(zone)).toContain('IANA');
  });
  test.each(['UTC', 'Europe/Berlin', 'Etc/GMT+3', 'America/Argentina/Ushuaia'])('but not the zone %s', (zone) => {
    expect(zoneProblem(zone)).toBeNull();
  });
});
