import fc from 'fast-check';
import type { Action, Command, Delivery } from './action.ts';
import { action, record, submit, submitMany, weighted } from './chance.ts';
import { story } from './stories.ts';

const delivery = weighted<Delivery>([8, 'once'], [1, 'twice'], [1, { lost: 0 }], [1, { lost: 1 }]);
const insist = weighted([7, false], [1, true]);

/** What one simulation does: it begins with jobs, since nothing can be done without. */
export const commands: fc.Arbitrary<Command[]> = fc.noBias(
  fc
    .tuple(
      record<Command>({ action: fc.oneof(submit, submitMany), delivery, insist }),
      fc.array(
        fc.oneof(
          { weight: 4, arbitrary: fc.tuple(record<Command>({ action, delivery, insist })) },
          { weight: 1, arbitrary: fc.tuple(story, delivery).map(([actions, d]) => actions.map((a) => told(a, d))) },
        ),
        { minLength: 1, maxLength: 22, size: 'max' },
      ),
    )
    .map(([first, rest]) => [first, ...rest.flat()]),
);

/** A story is told whole: what nothing should come of is its point at times. */
function told(action: Action, delivery: Delivery): Command {
  return { action, delivery, insist: true };
}
