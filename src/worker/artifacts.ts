import { type ArtifactData, type GatherOptions, gather } from '../artifacts/gather.ts';
import { type ArtifactRecord, artifactNameProblem, mediaTypeProblem } from '../core/artifact.ts';
import { NonRetryableError } from '../core/handler-errors.ts';
import { toIso } from '../core/job.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import type { HandlerContext } from './context.ts';
import { insideStep } from './inside-step.ts';

/** `ctx.artifact` of one attempt. */
export function createArtifactCalls(parts: {
  attempt: Attempt;
  writes: AttemptWrites;
  gathering: GatherOptions;
}): HandlerContext['artifact'] {
  const { attempt, writes, gathering } = parts;
  /** The newest call of each name that is not over: two that are under way must not arrive in the other order. */
  const storing = new Map<string, Promise<unknown>>();

  async function store(name: string, data: ArtifactData, mediaType: string): Promise<ArtifactRecord> {
    const gathered = await insideStep(attempt, () =>
      gather(data, name, gathering, (step) => {
        attempt.assertWritable();
        return attempt.unlessOver(step);
      }),
    );
    try {
      const { bytes, sha256, content } = gathered;
      const row = await writes.storeArtifact({ name, mediaType, bytes, sha256, content });
      return { name, mediaType, bytes, sha256, createdAt: new Date(toIso(row.createdAt)) };
    } finally {
      await gathered.release();
    }
  }

  return async (name, data, { mediaType = typeOf(data) } = {}) => {
    refuse('the name of an artifact', artifactNameProblem(name));
    refuse(`the media type of artifact ${JSON.stringify(name)}`, mediaTypeProblem(mediaType));
    const before = storing.get(name);
    const mine = (async () => {
      await before?.catch(() => {});
      return store(name, data, mediaType);
    })();
    storing.set(name, mine);
    try {
      return await mine;
    } finally {
      if (storing.get(name) === mine) storing.delete(name);
    }
  };
}

function typeOf(data: ArtifactData): string {
  if (typeof data === 'string') return 'text/plain; charset=utf-8';
  return (data instanceof Blob && data.type) || 'application/octet-stream';
}

/** @throws NonRetryableError INVALID_ARTIFACT: the handler is wrong, and would be so again */
function refuse(what: string, problem: string | null): void {
  if (problem !== null) throw new NonRetryableError(`${what} ${problem}`, { code: 'INVALID_ARTIFACT' });
}
