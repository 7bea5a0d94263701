import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { trial } from './bench.ts';

const ROUNDS = 100;
/** Of 25. */
const APPROVERS = 20;

const DECIDE = (verb: 'approveJob' | 'rejectJob') => `mutation ($input: DecideInput!) {
  ${verb}(input: $input) {
    __typename
    ... on DecidePayload { approval { state decidedBy decisions { by verdict } } }
    ... on AlreadyDecided { message approval { state decidedBy } }
  }
}`;

interface Answer {
  __typename: string;
  message?: string;
  approval: { state: string; decidedBy: string; decisions: { by: string; verdict: string }[] };
}

afterAll(cleanUp);

/** A decision as one person, by one of the APIs. */
async function decide(url: string, verb: 'approveJob' | 'rejectJob', person: string, jobId: string): Promise<Answer> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-waymark-actor': `user:${person}` },
    body: JSON.stringify({
      query: DECIDE(verb),
      variables: { input: { jobId, ...(verb === 'approveJob' ? { data: { say: person } } : {}) } },
    }),
  });
  const { data, errors } = (await response.json()) as { data: Record<string, Answer> | null; errors?: unknown };
  const answer = data?.[verb];
  if (!answer) throw new Error(JSON.stringify(errors));
  return answer;
}

describePostgres('decisions', () => {
  test(`of 25 people at once, over two APIs, one counts, and is done once, ${ROUNDS} rounds (B29)`, {
    timeout: 180_000,
  }, async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    const [second] = await Promise.all([t.api(), t.worker(), t.worker()]);
    const { file, lines } = await t.ledger();
    const won: { [state: string]: number } = { APPROVED: 0, REJECTED: 0 };
    const ids: string[] = [];
    for (let round = 0; round < ROUNDS; round++) ids.push((await t.client.submit('gate', { ledger: file })).id);
    for (const id of ids) {
      await eventually(async () => expect(await t.state(id)).toBe('WAITING_FOR_REVIEW'), { timeoutMs: 30_000 });
      const people = Array.from({ length: 25 }, (_, i) => ({
        person: `p${i}`,
        verb: i < APPROVERS ? ('approveJob' as const) : ('rejectJob' as const),
        at: random(),
      })).sort((a, b) => a.at - b.at);
      const answers = await Promise.all(
        people.map(({ verb, person }, i) => decide((i % 2 ? second : t.first).url, verb, person, id)),
      );
      const made = answers.flatMap((a, i) => (a.__typename === 'DecidePayload' ? [{ ...a, ...people[i] }] : []));
      expect(made).toHaveLength(1);
      const [{ approval, person, verb } = { approval: undefined, person: undefined, verb: undefined }] = made;
      expect(approval?.decidedBy).toBe(`user:${person}`);
      for (const answer of answers.filter((a) => a.__typename !== 'DecidePayload')) {
        expect(answer).toMatchObject({ __typename: 'AlreadyDecided', approval: { decidedBy: `user:${person}` } });
      }
      // The same again, by the other API, is answered alike.
      if (verb && person)
        expect(await decide(second.url, verb, person, id)).toMatchObject({
          __typename: 'DecidePayload',
          approval: { ...approval },
        });
      won[approval?.state ?? 'none'] = (won[approval?.state ?? 'none'] ?? 0) + 1;
    }
    console.log(won);
    for (const id of ids) {
      const state = await t.ends(id);
      const notes = lines().flatMap(([job, , note]) => (job === id ? [note] : []));
      expect(notes).toEqual(state === 'COMPLETED' ? ['A', 'B'] : ['A']);
      expect((await t.events(id)).filter((type) => type === 'ApprovalDecided')).toHaveLength(1);
    }
  });
});
