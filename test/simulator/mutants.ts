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

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'an end is fenced by the number of its attempt',
    piece: /and s\.attempt = i\.attempt(?=\s+for no key update skip locked)/g,
    replacedBy: '',
  },
  {
    breaks: 'checkpoints and progress are fenced by the number of their attempt',
    piece: /and s\.attempt = i\.attempt(?=\s+for no key update\s+\))/g,
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
    piece: /failures = s\.failures \+ d\.spends::int/g,
    replacedBy: 'failures = d.spends::int',
  },
  {
    breaks: 'only the first stall of a run goes back at once',
    piece: /when l\.outcome = 'STALLED' and l\.stalls = 0 then/g,
    replacedBy: "when l.outcome = 'STALLED' then",
  },
  {
    breaks: 'the next run has its whole budget',
    piece: /failures = case when l\.finished then 0 else s\.failures end/g,
    replacedBy: 'failures = s.failures',
  },
  {
    breaks: 'a retry is for the run that its caller has seen',
    piece: /(pruned_at is null and \(\$4::int is null or) s\.run = \$4\)/g,
    replacedBy: '$1 true)',
  },
  {
    breaks: 'a retry from a checkpoint drops what was saved after it, too',
    piece: /c\.sequence >= l\.from_sequence/g,
    replacedBy: 'c.sequence = l.from_sequence',
  },
  {
    breaks: 'a cancel is requested once',
    piece: /and s\.cancel_requested_at is null and/g,
    replacedBy: 'and',
  },
  {
    breaks: 'a worker whose lease is over claims nothing',
    piece: /w\.state = 'ACTIVE' and w\.lease_until > t\.now/g,
    replacedBy: "w.state = 'ACTIVE'",
  },
  {
    breaks: 'jobs start in the order of their ranks',
    piece: /order by s\.rank, s\.id/g,
    replacedBy: 'order by s.id desc',
  },
  {
    breaks: 'a job is staged when it is due and not before',
    piece: /s\.run_at <= t\.now/g,
    replacedBy: "s.run_at <= t.now + interval '1 day'",
  },
  {
    breaks: 'a key that holds gives its job and no new one',
    piece: /case when f\.free then excluded\.job_id else k\.job_id end/g,
    replacedBy: 'excluded.job_id',
  },
  {
    breaks: 'the bare row of a job stays as long as its key',
    piece: /k\.expires_at > t\.now\) as keyed/g,
    replacedBy: 'false) as keyed',
  },
  {
    breaks: 'states are counted as jobs move',
    piece: /where m\.from_state is distinct from m\.state/g,
    replacedBy: 'where m.from_state is distinct from m.state and m.from_state is not null',
  },
];
