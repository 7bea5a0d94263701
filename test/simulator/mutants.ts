/**
 * Engines that are wrong in one place. Each is the right SQL with one piece replaced: what a slip of the pen would leave.
 * When a statement is reworded its mutant no longer applies; the test says so, and the piece here is to be adapted.
 */
export interface Mutant {
  /** The rule that it breaks. */
  readonly breaks: string;
  readonly piece: RegExp;
  /** What stands in its place, as for `String.replace`. */
  readonly replacedBy: string;
}

const ENDS: readonly Mutant[] = [
  {
    breaks: 'an end is fenced by the number of its attempt',
    piece: /and s\.attempt = i\.attempt(?=\s+for no key update skip locked)/g,
    replacedBy: '',
  },
  {
    breaks: 'who repeats an end because its answer was lost is told so',
    piece: /a\.outcome, a\.digest/g,
    replacedBy: 'a.outcome, null as digest',
  },
  {
    breaks: 'a requested cancel wins the edges out of RUNNING',
    piece: /when l\.cancel_requested_at is not null then 'CANCELED'/g,
    replacedBy: "when false then 'CANCELED'",
  },
  {
    breaks: 'failures add up over the attempts of a run',
    piece: /= s\.failures \+ d\.spends/g,
    replacedBy: '= d.spends',
  },
  {
    breaks: 'a run whose budget is spent has failed',
    piece: /l\.failures \+ 1 >= l\.max_attempts/g,
    replacedBy: 'l.failures >= l.max_attempts',
  },
  {
    breaks: 'only the first stall of a run goes back at once',
    piece: /'STALLED' and l\.stalls = 0/g,
    replacedBy: "'STALLED'",
  },
  {
    breaks: 'a handler that stops although nobody canceled has handed its job back',
    piece: /or i\.outcome = 'CANCELED' and s\.cancel_requested_at is null/g,
    replacedBy: '',
  },
  {
    breaks: 'the twenty-first handing back in a row is a stall',
    piece: /s\.releases >= 20/g,
    replacedBy: 's.releases > 20',
  },
  {
    breaks: 'handings back are counted in a row',
    piece: /then s\.releases \+ 1 else 0 end/g,
    replacedBy: 'then s.releases + 1 else s.releases end',
  },
  {
    breaks: 'a run that has postponed itself too often fails',
    piece: /l\.suspensions \+ 1 > /g,
    replacedBy: 'l.suspensions > ',
  },
  {
    breaks: 'the next run has no result before it is completed',
    piece: /select l\.id from l where l\.finished\)/g,
    replacedBy: 'select l.id from l where false)',
  },
];

const CLIENTS: readonly Mutant[] = [
  {
    breaks: 'the next run has its whole budget',
    piece: /failures = case when l\.finished then 0/g,
    replacedBy: 'failures = case when false then 0',
  },
  {
    breaks: 'a retry is for the run that its caller has seen',
    piece: /is null or s\.run = \$4\)(?=\s+else s\.state in)/g,
    replacedBy: 'is null or true)',
  },
  {
    breaks: 'a retry from a checkpoint drops what was saved after it, too',
    piece: />= l\.from_sequence/g,
    replacedBy: '= l.from_sequence',
  },
  {
    breaks: 'a job whose input is gone is not retried',
    piece: /and s\.pruned_at is null(?=\s+and case when s\.id = any\(\$9)/g,
    replacedBy: '',
  },
  {
    breaks: 'a cancel is requested once',
    piece: /s\.cancel_requested_at is null and /g,
    replacedBy: '',
  },
  {
    breaks: 'a cancel is delivered once',
    piece: /and s\.cancel_delivered_at is null/g,
    replacedBy: '',
  },
  {
    breaks: 'a key that holds gives its job and no new one',
    piece: /f\.free then excluded\.job_id else k\.job_id/g,
    replacedBy: 'f.free then excluded.job_id else excluded.job_id',
  },
  {
    breaks: 'a key that is unique while unfinished holds until its job has ended',
    piece: /when k\.scope = 'UNTIL_FINISHED'/g,
    replacedBy: 'when false',
  },
  {
    breaks: 'a job that runs again has its key again, or stays as it is',
    piece: /o\.id not in \(select id from kj\)/g,
    replacedBy: 'true',
  },
];

const WORKERS: readonly Mutant[] = [
  {
    breaks: 'checkpoints and progress are fenced by the number of their attempt',
    piece: /and s\.attempt = i\.attempt(?=\s+for no key update\s+\))/g,
    replacedBy: '',
  },
  {
    breaks: 'a cursor that is not ahead of the saved one is not saved by a transaction',
    piece: /excluded\.processed > c\.processed/g,
    replacedBy: 'true',
  },
  {
    breaks: 'a worker whose lease is over claims nothing',
    piece: /'ACTIVE' and w\.lease_until > t\.now/g,
    replacedBy: "'ACTIVE'",
  },
  {
    breaks: 'jobs start in the order of their ranks',
    piece: /order by s\.rank, s\.id/g,
    replacedBy: 'order by s.id desc',
  },
  {
    breaks: 'a lost worker does not come back to life',
    piece: /and w\.state <> 'LOST'(?=\s+returning)/g,
    replacedBy: '',
  },
  {
    breaks: 'a worker that hangs gives its lease up',
    piece: /when \$6::boolean then 'LOST'/g,
    replacedBy: "when false then 'LOST'",
  },
  {
    breaks: 'what a hanging worker ran has not advanced, and is not lost',
    piece: /coalesce\(w\.hung, false\)/g,
    replacedBy: 'false',
  },
  {
    breaks: 'a checkpoint is an advance',
    piece: /last_advance_at = t\.now, progress/g,
    replacedBy: 'progress',
  },
];

const PASSES: readonly Mutant[] = [
  {
    breaks: 'a job is staged when it is due and not before',
    piece: /s\.run_at <= \(select now from t\)/g,
    replacedBy: "s.run_at <= (select now from t) + interval '1 day'",
  },
  {
    breaks: 'a job is stuck when it has not advanced for as long as its task allows',
    piece: /j\.stall_timeout_ms \* /g,
    replacedBy: '0 * ',
  },
  {
    breaks: 'the bare row of a job stays as long as its key',
    piece: /k\.expires_at > t\.now\) as keyed/g,
    replacedBy: 'false) as keyed',
  },
  {
    breaks: 'a key is not pruned before its unfinished job ends',
    piece: /k\.scope <> 'UNTIL_FINISHED' or not exists/g,
    replacedBy: 'true or not exists',
  },
  {
    breaks: 'a bare row goes, also when no key leads to it',
    piece: /s\.pruned_at is not null and s\.pruned_at < /g,
    replacedBy: 'false and s.pruned_at < ',
  },
  {
    breaks: 'states are counted as jobs move',
    piece: /m\.from_state is distinct from m\.state/g,
    replacedBy: 'm.from_state <> m.state',
  },
];

export const MUTANTS: readonly Mutant[] = [...ENDS, ...CLIENTS, ...WORKERS, ...PASSES];
