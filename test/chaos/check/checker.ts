import type { History } from './history.ts';
import { accountOfFamilies } from './rules-families.ts';
import { accountOfFollowers } from './rules-followers.ts';
import { accountOfJobs } from './rules-jobs.ts';
import { accountOfRuns } from './rules-runs.ts';
import { accountOfService } from './rules-service.ts';
import { accountOfWork } from './rules-work.ts';
import type { Rule, Violation } from './violation.ts';

/** Adds a violation of a rule. */
export type Report = (rule: Rule, text: string) => void;

/** Everything in a history that breaks a rule; nothing when all of them hold. */
export function check(history: History): Violation[] {
  const violations: Violation[] = [];
  const report: Report = (rule, text) => void violations.push({ rule, text });
  accountOfJobs(history, report);
  accountOfRuns(history, report);
  accountOfWork(history, report);
  accountOfFamilies(history, report);
  accountOfFollowers(history, report);
  accountOfService(history, report);
  return violations;
}
