/**
 * Engines that are wrong in one place. Each is the right SQL with one piece replaced: what a slip of the pen would leave.
 * When a statement is reworded its mutant no longer applies; the test says so, and the piece here is to be adapted.
 */
export interface Mutant {
  /** The rule that it breaks. */
  readonly breaks: string;
  readonly piece: string;
  readonly replacedBy: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'an end is fenced by the number of its attempt',
    piece: "where s.id = i.id and s.state = 'RUNNING' and s.attempt = i.attempt\n    for no key update skip locked",
    replacedBy: "where s.id = i.id and s.state = 'RUNNING'\n    for no key update skip locked",
  },
  {
    breaks: 'checkpoints and progress are fenced by the number of their attempt',
    piece: "where s.id = i.id and s.state = 'RUNNING' and s.attempt = i.attempt\n    for no key update\n",
    replacedBy: "where s.id = i.id and s.state = 'RUNNING'\n    for no key update\n",
  },
  {
    breaks: 'who repeats an end because its answer was lost is told so',
    piece: 'a.outcome, a.digest, s.state',
    replacedBy: 'a.outcome, null as digest, s.state',
  },
  {
    breaks: 'a requested cancel wins the edges out of RUNNING',
    piece: "when l.cancel_requested_at is not null then 'CANCELED'",
    replacedBy: "when false then 'CANCELED'",
  },
  {
    breaks: 'failures add up over the attempts of a run',
    piece: 'failures = s.failures + d.spends::int',
    replacedBy: 'failures = d.spends::int',
  },
  {
    breaks: 'only the first stall of a run goes back at once',
    piece: "when l.outcome = 'STALLED' and l.stalls = 0 then 'QUEUED'",
    replacedBy: "when l.outcome = 'STALLED' then 'QUEUED'",
  },
  {
    breaks: 'the next run has its whole budget',
    piece: 'failures = case when l.finished then 0 else s.failures end',
    replacedBy: 'failures = s.failures',
  },
  {
    breaks: 'a retry is for the run that its caller has seen',
    piece: 's.pruned_at is null and ($4::int is null or s.run = $4)',
    replacedBy: 's.pruned_at is null and ($4::int is null or true)',
  },
  {
    breaks: 'a retry from a checkpoint drops what was saved after it, too',
    piece: 'c.sequence >= l.from_sequence',
    replacedBy: 'c.sequence = l.from_sequence',
  },
  {
    breaks: 'a cancel is requested once',
    piece: 'and s.cancel_requested_at is null and ($5::int is null or s.run = $5)',
    replacedBy: 'and ($5::int is null or s.run = $5)',
  },
  {
    breaks: 'a worker whose lease is over claims nothing',
    piece: "w.state = 'ACTIVE' and w.lease_until > t.now",
    replacedBy: "w.state = 'ACTIVE' and t.now is not null",
  },
  {
    breaks: 'jobs start in the order of their ranks',
    piece: 'order by s.rank, s.id',
    replacedBy: 'order by s.id desc',
  },
  {
    breaks: 'a job is staged when it is due and not before',
    piece: 's.run_at <= t.now',
    replacedBy: "s.run_at <= t.now + interval '1 day'",
  },
  {
    breaks: 'a key that holds gives its job and no new one',
    piece: 'case when f.free then excluded.job_id else k.job_id end',
    replacedBy: 'excluded.job_id',
  },
  {
    breaks: 'the bare row of a job stays as long as its key',
    piece: 'k.job_id = s.id and k.expires_at > t.now',
    replacedBy: 'k.job_id = s.id and false',
  },
  {
    breaks: 'states are counted as jobs move',
    piece: 'where m.from_state is distinct from m.state',
    replacedBy: 'where m.from_state is distinct from m.state and m.from_state is not null',
  },
];
