import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { configFromProcess, type Environment, isLoopback, parseConfig, SETTINGS } from '../src/config.ts';
import { formatDuration, parseDuration } from '../src/core/duration.ts';
import { InvalidSettings } from '../src/core/errors.ts';

function problemsOf(env: Environment): readonly string[] {
  try {
    parseConfig(env);
  } catch (error) {
    if (error instanceof InvalidSettings) return error.problems;
    throw error;
  }
  return [];
}

describe('settings', () => {
  test('the defaults of the table are what an empty environment gives', () => {
    const config = parseConfig({});
    expect(config).toMatchObject({
      databaseUrl: null,
      redisUrl: null,
      host: '127.0.0.1',
      port: 4000,
      portIsSet: false,
    });
    expect(config).toMatchObject({
      concurrency: 10,
      heartbeatMs: 5_000,
      leaseMs: 15_000,
      sweepMs: 5_000,
      pollMs: 1_000,
    });
    expect(config.retainMs).toEqual({
      completed: 604_800_000,
      failed: 2_592_000_000,
      canceled: 604_800_000,
      keys: 2_592_000_000,
    });
    expect(config.maxBytes).toEqual({ input: 1_048_576, result: 1_048_576, checkpoint: 1_048_576 });
    expect(config).toMatchObject({
      maxBlockMs: 60_000,
      priorityStepMs: 600_000,
      graceMs: 30_000,
      logLevel: 'info',
      warnings: [],
    });
  });

  test('an empty text counts as not set', () => {
    const empty = Object.fromEntries(SETTINGS.map((s) => [s.name, '']));
    expect(parseConfig(empty)).toEqual(parseConfig({}));
  });

  test('the parsed value cannot be changed', () => {
    const config = parseConfig({});
    expect(Object.isFrozen(config) && Object.isFrozen(config.retainMs) && Object.isFrozen(config.maxBytes)).toBe(true);
  });

  test.each([
    ['DATABASE_URL', 'mysql://localhost/x', 'postgres://'],
    ['DATABASE_URL', 'localhost:5432', 'postgres://'],
    ['REDIS_URL', 'localhost:6379', 'redis://'],
    ['HOST', '0.0.0.0', 'loopback'],
    ['HOST', 'example.com', 'loopback'],
    ['PORT', '-1', 'from 0 to 65535'],
    ['PORT', '65536', 'from 0 to 65535'],
    ['PORT', '4000x', 'from 0 to 65535'],
    ['WAYMARK_CONCURRENCY', '0', 'from 1'],
    ['WAYMARK_CONCURRENCY', '1.5', 'whole number'],
    ['WAYMARK_HEARTBEAT', '99ms', '100ms or more'],
    ['WAYMARK_HEARTBEAT', '5', 'duration'],
    ['WAYMARK_LEASE', '14999ms', 'three beats'],
    ['WAYMARK_LEASE', '25d', 'at most 1d'],
    ['WAYMARK_SWEEP', '0s', '100ms or more'],
    ['WAYMARK_POLL', '-1s', 'duration'],
    ['WAYMARK_MAX_BLOCK', 'soon', 'duration'],
    ['WAYMARK_PRIORITY_STEP', '0', 'duration'],
    ['WAYMARK_GRACE', '1 s', 'duration'],
    ...['COMPLETED', 'FAILED', 'CANCELED', 'KEYS'].flatMap((what) =>
      ['0', '0s', '-1', 'abc'].map((value): [string, string, string] => [
        `WAYMARK_RETAIN_${what}`,
        value,
        'longer than 0',
      ]),
    ),
    ['WAYMARK_MAX_INPUT', '12abc', 'size'],
    ['WAYMARK_MAX_RESULT', '0kb', 'size'],
    ['WAYMARK_MAX_CHECKPOINT', '1gb', 'size'],
    ['WAYMARK_AUTH', 'keys', 'not available yet'],
    ['WAYMARK_AUTH', 'jwt', 'not available yet'],
    ['WAYMARK_AUTH', 'on', 'must be "off"'],
    ['WAYMARK_URL', '127.0.0.1:4000', 'http://'],
    ['WAYMARK_ACTOR', 'user ada', 'such as "user:ada"'],
    ['WAYMARK_ACTOR', 'ada', 'must be user:NAME'],
    ['WAYMARK_ACTOR', 'group:editors', 'must be user:NAME'],
    ['WAYMARK_ACTOR', 'system:expiry', 'must be user:NAME'],
    ['WAYMARK_PUBLIC_URL', 'ftp://x', 'http://'],
    ['WAYMARK_S3_REGION', 'eu central', 'a region such as'],
    ['LOG_LEVEL', 'verbose', 'one of fatal'],
  ])('%s=%s is refused, by name, value and rule', (name, value, rule) => {
    const [problem, ...more] = problemsOf({ [name]: value });
    expect(more).toEqual([]);
    expect(problem).toContain(`${name}=${JSON.stringify(value)} `);
    expect(problem).toContain(rule);
  });

  test('one message lists every wrong setting, rules over several settings included', () => {
    const problems = problemsOf({
      PORT: 'x',
      WAYMARK_LEASE: '5s',
      HOST: '0.0.0.0',
      LOG_LEVEL: 'loud',
      WAYMARK_RETAIN_KEYS: '0',
    });
    const names = problems.map((p) => p.slice(0, p.indexOf('=')));
    expect(names.sort()).toEqual(['HOST', 'LOG_LEVEL', 'PORT', 'WAYMARK_LEASE', 'WAYMARK_RETAIN_KEYS']);
  });

  test('the store for large artifacts is set as a whole or not at all', () => {
    const s3 = {
      WAYMARK_S3_URL: 'https://s3.example',
      WAYMARK_S3_BUCKET: 'things',
      WAYMARK_S3_KEY_ID: 'key',
      WAYMARK_S3_SECRET: 's3cret',
    };
    const { s3: parsed } = parseConfig(s3);
    expect(parsed).toEqual({
      url: 'https://s3.example',
      bucket: 'things',
      region: 'us-east-1',
      keyId: 'key',
      secret: 's3cret',
    });
    expect(parseConfig({}).s3).toBeNull();
    const { WAYMARK_S3_SECRET: _, ...without } = s3;
    expect(problemsOf(without)).toEqual([expect.stringMatching(/^WAYMARK_S3_SECRET must be set, too/)]);
    expect(problemsOf({ WAYMARK_S3_SECRET: 's3cret' }).join()).not.toContain('s3cret');
    expect(problemsOf({ ...s3, WAYMARK_S3_BUCKET: 'No_Bucket' })).toEqual([expect.stringContaining('3 to 63')]);
  });

  test('no password or token stands in a message', () => {
    const env = { DATABASE_URL: 'pg://ada:s3cr/e@t@h/x', REDIS_URL: 'u:s3cret@h', WAYMARK_TOKEN: 's3cret with spaces' };
    const text = problemsOf(env).join('\n');
    expect(problemsOf(env)).toHaveLength(3);
    expect(text).not.toMatch(/s3cr|t@h/);
  });

  test('trial settings as low as 100ms are accepted', () => {
    const low = { WAYMARK_HEARTBEAT: '100ms', WAYMARK_LEASE: '300ms', WAYMARK_SWEEP: '100ms', WAYMARK_POLL: '100ms' };
    expect(parseConfig(low)).toMatchObject({ heartbeatMs: 100, leaseMs: 300, sweepMs: 100, pollMs: 100 });
  });

  test('an unknown WAYMARK_ name warns, with the nearest name', () => {
    const { warnings } = parseConfig({ WAYMARK_LEESE: '1s', WAYMARK_QUITE_DIFFERENT: '1', OTHER: '1' });
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/WAYMARK_LEESE.*did you mean WAYMARK_LEASE\?/);
    expect(warnings[1]).not.toContain('did you mean');
  });

  test('only addresses of this machine are loopback', () => {
    expect(['127.0.0.1', '127.1.2.3', '::1', 'localhost'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', 'localhost.example.com'].some(isLoopback)).toBe(
      false,
    );
  });

  test("a back end's own HOST, PORT and LOG_LEVEL are not Waymark's", () => {
    const before = { ...process.env };
    Object.assign(process.env, { HOST: '0.0.0.0', PORT: 'unix', LOG_LEVEL: 'verbose', DATABASE_URL: 'mysql://theirs' });
    try {
      const config = configFromProcess({ databaseUrl: null, lease: '20s' });
      expect(config).toMatchObject({
        host: '127.0.0.1',
        port: 4000,
        logLevel: 'info',
        databaseUrl: null,
        leaseMs: 20_000,
      });
    } finally {
      for (const name of ['HOST', 'PORT', 'LOG_LEVEL', 'DATABASE_URL']) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    }
  });
});

/** The most that twelve digits of milliseconds say: 31 years. */
const LONGEST = 999_999_999_999;

describe('durations', () => {
  test('what is formatted is parsed back to the same number', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: LONGEST }), (ms) => parseDuration(formatDuration(ms)) === ms));
  });

  test('a duration of every unit reaches the settings exactly', () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
    const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30_000 }), unit, (n, u) => {
        expect(parseConfig({ WAYMARK_RETAIN_FAILED: `${n}${u}` }).retainMs.failed).toBe(n * units[u]);
      }),
    );
  });

  test('whatever text is no duration is refused and never half read', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^\d{1,12}(\.\d{1,3})?(ms|s|m|h|d)$/.test(text));
        expect(parseDuration(text)).toBeNull();
      }),
    );
  });
});
