/** The rules of a round, each with what it asks for. */
export const RULES = {
  I1: 'every acknowledged id resolves, and each key stands for one job',
  I2: 'a run has one terminal event, and nothing follows it',
  I3: 'attempts are numbered without gaps, one is open at most, failures stay within the budget',
  I4: 'each executed step belongs to a recorded attempt, and no finished step is executed again',
  I5: 'nobody goes on before whom he waits for has ended, and children are there once',
  I6: 'events are numbered without gaps and in the order of time, the terminal one is last',
  I7: 'after the quiet every job has ended',
  I8: 'result, progress and checkpoints come from the attempt that won',
  I9: 'no internal error reached a client, and no process ended unasked',
  I10: 'connections, channels and files are back at their bounds',
  I11: 'jobs ended as planned, and every kind of fault was felt',
  P5: 'writes that commit with a checkpoint happened exactly once',
  P6: 'a killed worker’s job soon runs elsewhere',
  P7: 'a job is not taken from a worker that lives',
  P12: 'what subscribers were told is the log',
  COUNTS: 'the counts per state are those of the jobs',
} as const;

export type Rule = keyof typeof RULES;

export interface Violation {
  rule: Rule;
  text: string;
}
