import { z } from 'zod';
import { CALLER_RULE, isCaller } from './core/actor.ts';
import { formatDuration, parseDuration } from './core/duration.ts';
import { InvalidSettings } from './core/errors.ts';
import { S3_SCHEMA, type S3Settings, s3Of, s3Problems } from './s3-settings.ts';
import { duration, fault, integer, shown, size, unknownNames, url, visible } from './setting-values.ts';

/**
 * The only file that knows the names of environment variables. They are parsed once, at the edge, into one frozen
 * value; everything below takes the options it needs. The README's table is checked against `SETTINGS`.
 */
export interface Setting {
  readonly name: SettingName;
  /** As written in the environment; null: none. */
  readonly default: string | null;
  readonly meaning: string;
}

const TABLE = [
  ['DATABASE_URL', null, 'Postgres; without it the database is embedded, in `WAYMARK_DATA_DIR`'],
  ['REDIS_URL', null, 'Redis; without it live updates are in-process, and other processes poll'],
  ['WAYMARK_DATA_DIR', '.waymark', 'embedded database and artifacts'],
  ['WAYMARK_S3_URL', null, 'S3-compatible store for artifacts over 16 MB, beside Postgres; needs the next four'],
  ['WAYMARK_S3_BUCKET', null, 'its bucket, which is named in the path of requests'],
  ['WAYMARK_S3_REGION', 'us-east-1', 'its region'],
  ['WAYMARK_S3_KEY_ID', null, 'id of the key that requests are signed with'],
  ['WAYMARK_S3_SECRET', null, 'the secret of that key'],
  ['HOST', '127.0.0.1', 'where to listen; a non-loopback address is refused while authentication is off'],
  ['PORT', '4000', 'where to listen; 0 takes a free one. A worker serves `/healthz` only when it is set'],
  ['WAYMARK_CONCURRENCY', '10', 'slots of a worker'],
  ['WAYMARK_HEARTBEAT', '5s', "a worker's beat, 100ms or more"],
  ['WAYMARK_LEASE', '15s', 'length of a lease, three beats or more; a dead worker is noticed after it'],
  ['WAYMARK_SWEEP', '5s', 'maintenance pass, 100ms or more'],
  ['WAYMARK_POLL', '1s', 'how often a worker looks for work without a hint, 100ms or more'],
  ['WAYMARK_MAX_BLOCK', '60s', 'a handler that blocks the event loop for longer loses the worker its lease'],
  ['WAYMARK_PRIORITY_STEP', '10m', 'one step of priority outweighs this much waiting'],
  ['WAYMARK_GRACE', '30s', 'time for handlers after SIGTERM or cancel'],
  ['WAYMARK_RETAIN_COMPLETED', '7d', 'then all that belongs to a completed job is removed'],
  ['WAYMARK_RETAIN_FAILED', '30d', 'the same for failed jobs'],
  ['WAYMARK_RETAIN_CANCELED', '7d', 'the same for canceled jobs'],
  ['WAYMARK_RETAIN_KEYS', '30d', 'idempotency keys; the bare row of a job with a key stays as long'],
  ['WAYMARK_MAX_INPUT', '1mb', 'largest input of a job, as JSON'],
  ['WAYMARK_MAX_RESULT', '1mb', 'largest result, as JSON'],
  ['WAYMARK_MAX_CHECKPOINT', '1mb', 'largest checkpoint, as JSON'],
  ['WAYMARK_AUTH', 'off', 'off: the actor is the `x-waymark-actor` header, else `user:local`'],
  ['WAYMARK_URL', 'http://127.0.0.1:4000/graphql', 'service that the client commands speak to'],
  ['WAYMARK_TOKEN', null, 'bearer token of the client commands'],
  ['WAYMARK_ACTOR', null, 'who the client commands act as, while authentication is off'],
  ['WAYMARK_PUBLIC_URL', null, 'for links in notifications; default: the listening address'],
  ['LOG_LEVEL', 'info', 'fatal, error, warn, info, debug, trace or silent'],
] as const;

/** The name of a setting. */
export type SettingName = (typeof TABLE)[number][0];

/** Every setting with its default and meaning, in the order of the README's table. */
export const SETTINGS: readonly Setting[] = TABLE.map(([name, byDefault, meaning]) => ({
  name,
  default: byDefault,
  meaning,
}));

/** The settings in use, in milliseconds and bytes. Frozen. */
export interface Config {
  /** Null: embedded. */
  readonly databaseUrl: string | null;
  readonly redisUrl: string | null;
  readonly dataDir: string;
  /** For artifacts that are too large for the database; null: there is none. */
  readonly s3: S3Settings | null;
  readonly host: string;
  readonly port: number;
  /** Whether PORT was set: only then does a worker listen. */
  readonly portIsSet: boolean;
  readonly concurrency: number;
  readonly heartbeatMs: number;
  readonly leaseMs: number;
  readonly sweepMs: number;
  readonly pollMs: number;
  readonly maxBlockMs: number;
  readonly priorityStepMs: number;
  readonly graceMs: number;
  readonly retainMs: {
    readonly completed: number;
    readonly failed: number;
    readonly canceled: number;
    readonly keys: number;
  };
  readonly maxBytes: { readonly input: number; readonly result: number; readonly checkpoint: number };
  readonly auth: 'off';
  readonly url: string;
  readonly token: string | null;
  readonly actor: string | null;
  /** Null: the listening address. */
  readonly publicUrl: string | null;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** What looks like a mistake but stops nothing: an unknown `WAYMARK_…` name. */
  readonly warnings: readonly string[];
}

/** Variables by name, as in `process.env`. An empty text counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const SECRETS: readonly string[] = ['WAYMARK_TOKEN', 'WAYMARK_S3_SECRET'] satisfies SettingName[];
/** Timers overflow beyond 24 days, and nobody means a beat of more than a day. */
const TIMER = { min: '100ms', max: '1d' };

const SCHEMA = z.object({
  DATABASE_URL: url(['postgres', 'postgresql']).nullable(),
  REDIS_URL: url(['redis', 'rediss']).nullable(),
  WAYMARK_DATA_DIR: z.string(),
  ...S3_SCHEMA,
  HOST: z.string().regex(/^\S+$/, 'must be a host name or an address'),
  PORT: integer(0, 65_535),
  WAYMARK_CONCURRENCY: integer(1, 10_000),
  WAYMARK_HEARTBEAT: duration(TIMER),
  WAYMARK_LEASE: duration(TIMER),
  WAYMARK_SWEEP: duration(TIMER),
  WAYMARK_POLL: duration(TIMER),
  WAYMARK_MAX_BLOCK: duration(TIMER),
  WAYMARK_PRIORITY_STEP: duration({ min: '1ms', max: '30d' }),
  WAYMARK_GRACE: duration({ min: '0ms', max: '1d' }),
  WAYMARK_RETAIN_COMPLETED: duration({ min: '1ms' }),
  WAYMARK_RETAIN_FAILED: duration({ min: '1ms' }),
  WAYMARK_RETAIN_CANCELED: duration({ min: '1ms' }),
  WAYMARK_RETAIN_KEYS: duration({ min: '1ms' }),
  WAYMARK_MAX_INPUT: size(),
  WAYMARK_MAX_RESULT: size(),
  WAYMARK_MAX_CHECKPOINT: size(),
  WAYMARK_AUTH: z.string().transform((value, ctx): 'off' => {
    if (value === 'keys' || value === 'jwt') fault(ctx, 'is not available yet; only "off" is');
    else if (value !== 'off') fault(ctx, 'must be "off" ("keys" and "jwt" are not available yet)');
    return 'off';
  }),
  WAYMARK_URL: url(['http', 'https']),
  WAYMARK_TOKEN: visible().nullable(),
  WAYMARK_ACTOR: z.string().refine(isCaller, CALLER_RULE).nullable(),
  WAYMARK_PUBLIC_URL: url(['http', 'https']).nullable(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`),
} satisfies Record<SettingName, z.ZodType>);

/**
 * Parses settings.
 * @throws InvalidSettings that lists every wrong one with its name, value and rule.
 */
export function parseConfig(env: Environment): Config {
  const given = Object.fromEntries(SETTINGS.map((s) => [s.name, env[s.name] || s.default]));
  const parsed = SCHEMA.safeParse(given);
  const problems = parsed.success
    ? []
    : parsed.error.issues.map((issue) => wrong(String(issue.path[0]), given, issue.message));
  problems.push(...crossChecks(given));
  if (!parsed.success || problems.length > 0) throw new InvalidSettings(problems);
  const s = parsed.data;
  return Object.freeze({
    databaseUrl: s.DATABASE_URL,
    redisUrl: s.REDIS_URL,
    dataDir: s.WAYMARK_DATA_DIR,
    s3: s3Of(s),
    host: s.HOST,
    port: s.PORT,
    portIsSet: Boolean(env.PORT),
    concurrency: s.WAYMARK_CONCURRENCY,
    heartbeatMs: s.WAYMARK_HEARTBEAT,
    leaseMs: s.WAYMARK_LEASE,
    sweepMs: s.WAYMARK_SWEEP,
    pollMs: s.WAYMARK_POLL,
    maxBlockMs: s.WAYMARK_MAX_BLOCK,
    priorityStepMs: s.WAYMARK_PRIORITY_STEP,
    graceMs: s.WAYMARK_GRACE,
    retainMs: Object.freeze({
      completed: s.WAYMARK_RETAIN_COMPLETED,
      failed: s.WAYMARK_RETAIN_FAILED,
      canceled: s.WAYMARK_RETAIN_CANCELED,
      keys: s.WAYMARK_RETAIN_KEYS,
    }),
    maxBytes: Object.freeze({
      input: s.WAYMARK_MAX_INPUT,
      result: s.WAYMARK_MAX_RESULT,
      checkpoint: s.WAYMARK_MAX_CHECKPOINT,
    }),
    auth: s.WAYMARK_AUTH,
    url: s.WAYMARK_URL,
    token: s.WAYMARK_TOKEN,
    actor: s.WAYMARK_ACTOR,
    publicUrl: s.WAYMARK_PUBLIC_URL,
    logLevel: s.LOG_LEVEL,
    warnings: Object.freeze(
      unknownNames(
        Object.keys(env),
        TABLE.map(([name]) => name),
      ),
    ),
  });
}

/** Settings as options in code. Durations and sizes are written as in the environment; null takes a variable away. */
export type SettingOptions = { [K in keyof typeof OPTIONS]?: string | number | null };

const OPTIONS = {
  databaseUrl: 'DATABASE_URL',
  redisUrl: 'REDIS_URL',
  dataDir: 'WAYMARK_DATA_DIR',
  s3Url: 'WAYMARK_S3_URL',
  s3Bucket: 'WAYMARK_S3_BUCKET',
  s3Region: 'WAYMARK_S3_REGION',
  s3KeyId: 'WAYMARK_S3_KEY_ID',
  s3Secret: 'WAYMARK_S3_SECRET',
  concurrency: 'WAYMARK_CONCURRENCY',
  heartbeat: 'WAYMARK_HEARTBEAT',
  lease: 'WAYMARK_LEASE',
  sweep: 'WAYMARK_SWEEP',
  poll: 'WAYMARK_POLL',
  maxBlock: 'WAYMARK_MAX_BLOCK',
  priorityStep: 'WAYMARK_PRIORITY_STEP',
  grace: 'WAYMARK_GRACE',
  retainCompleted: 'WAYMARK_RETAIN_COMPLETED',
  retainFailed: 'WAYMARK_RETAIN_FAILED',
  retainCanceled: 'WAYMARK_RETAIN_CANCELED',
  retainKeys: 'WAYMARK_RETAIN_KEYS',
  maxInput: 'WAYMARK_MAX_INPUT',
  maxResult: 'WAYMARK_MAX_RESULT',
  maxCheckpoint: 'WAYMARK_MAX_CHECKPOINT',
  publicUrl: 'WAYMARK_PUBLIC_URL',
} as const satisfies Record<string, SettingName>;

/**
 * Settings of a back end that uses Waymark as a library: its own environment with `options` on top. HOST, PORT and
 * LOG_LEVEL of that process are about its own server and are not read.
 * @throws InvalidSettings
 */
export function configFromProcess(options: SettingOptions = {}): Config {
  const { HOST: _host, PORT: _port, LOG_LEVEL: _level, ...env } = process.env;
  for (const [option, name] of Object.entries(OPTIONS)) {
    const value = options[option as keyof SettingOptions];
    if (value !== undefined) env[name] = value === null ? undefined : String(value);
  }
  return parseConfig(env);
}

/** `config` for a server of a back end's own. @throws InvalidSettings, as for HOST and PORT in the environment */
export function listenOn(
  config: Config,
  { host = config.host, port = config.port }: { host?: string; port?: number },
): Config {
  const { host: checked, port: checkedPort } = parseConfig({ HOST: host, PORT: String(port) });
  return Object.freeze({ ...config, host: checked, port: checkedPort, portIsSet: true });
}

/** What the client commands need. The rest of the environment is not theirs: a wrong LEASE must not stop a `waymark show`. */
export type ClientConfig = Pick<Config, 'url' | 'token' | 'actor'>;

/**
 * Settings of a client command; what a flag says (`overrides`) stands above the environment.
 * @throws InvalidSettings
 */
export function clientConfig(
  env: Environment,
  overrides: Partial<Record<SettingName, string | undefined>> = {},
): ClientConfig {
  const { WAYMARK_URL, WAYMARK_TOKEN, WAYMARK_ACTOR } = env;
  const given = Object.entries(overrides).filter(([, value]) => value !== undefined);
  return parseConfig({ WAYMARK_URL, WAYMARK_TOKEN, WAYMARK_ACTOR, ...Object.fromEntries(given) });
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

type Given = Record<string, string | null>;

/** Rules over more than one setting. They are checked also when others are wrong, so that one start shows all faults. */
function crossChecks(given: Given): string[] {
  const problems: string[] = [];
  const beat = parseDuration(given.WAYMARK_HEARTBEAT ?? '');
  const lease = parseDuration(given.WAYMARK_LEASE ?? '');
  if (beat !== null && lease !== null && lease < 3 * beat) {
    const rule = `must be at least three beats (WAYMARK_HEARTBEAT is ${formatDuration(beat)}): ${formatDuration(3 * beat)}`;
    problems.push(wrong('WAYMARK_LEASE', given, rule));
  }
  if (given.HOST && !isLoopback(given.HOST)) {
    problems.push(
      wrong('HOST', given, 'must be a loopback address (127.0.0.1, ::1, localhost) while WAYMARK_AUTH is off'),
    );
  }
  problems.push(...s3Problems(given));
  return problems;
}

function wrong(name: string, given: Given, rule: string): string {
  return `${name}=${SECRETS.includes(name) ? '(hidden)' : shown(given[name] ?? '')} ${rule}`;
}
