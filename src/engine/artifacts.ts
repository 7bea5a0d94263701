import { randomBytes } from 'node:crypto';
import type { ContentStore } from '../artifacts/content-store.ts';
import type { GatherOptions } from '../artifacts/gather.ts';
import type { ArtifactLocation, ArtifactRow } from '../core/artifact.ts';
import { artifactPath, readArtifactPath } from '../core/artifact-link.ts';
import { LeaseLost, Unavailable } from '../core/errors.ts';
import { textProblem } from '../core/json.ts';
import { artifactOf, keptContents, unneededContents } from '../db/reads/artifacts.ts';
import type { Database, Tx } from '../db/types.ts';
import {
  holdContent,
  keepContent,
  removeContents,
  saveArtifact,
  sharedValue,
  takeContents,
} from '../db/writes/artifacts.ts';
import { ArtifactContents, type ArtifactPlaces } from './artifact-contents.ts';
import type { ArtifactsEngine, ArtifactWrite } from './artifact-types.ts';
import { type Announcer, announce } from './commit.ts';

/** Contents looked at in one pass, and removed in one transaction. */
const SWEEP_PAGE = 1_000;
const REMOVE_BATCH = 50;
/** A content outside the database is stored before its row is written: it is not taken for unneeded sooner than this. */
const GRACE_MS = 3_600_000;
/** Files of a process that was killed: nobody writes so slowly. */
const REMAINS_MS = 24 * 3_600_000;
/** A page of a paid service is not asked for at each sweep. */
const S3_EVERY_MS = 60_000;
/** How often a content is stored again that was removed before its row was written. */
const MAX_TRIES = 5;

export interface Artifacts extends ArtifactsEngine {
  readonly gathering: GatherOptions;
  /** Content, record and event; fenced by the attempt. @throws LeaseLost, Unavailable */
  store(write: ArtifactWrite): Promise<ArtifactRow>;
  /** Removes contents that no artifact needs: a bounded part, going round. Returns how many. */
  sweep(): Promise<number>;
  /** For the sole owner of its directory, before anything is stored: whatever is half stored is nobody's. */
  clear(): Promise<void>;
}

/** Artifacts: contents, each once under its sha256, and the records of jobs that need them. */
export function createArtifacts(database: Database, channel: Announcer, places: ArtifactPlaces = {}): Artifacts {
  const { graceMs = GRACE_MS } = places;
  let secret: Promise<string> | null = null;
  const contents = new ArtifactContents(places, sharedSecret);
  /** Where the next sweep goes on. */
  const cursors = new Map<ArtifactLocation, string | null>();
  let s3At = Number.NEGATIVE_INFINITY;

  function sharedSecret(): Promise<string> {
    secret ??= sharedValue(database.submit, 'artifact_secret', () => randomBytes(32).toString('base64url'));
    secret.catch(() => {
      secret = null;
    });
    return secret;
  }

  /** Record and event in one statement, the last one of a transaction in which the content cannot be removed. */
  async function writeRow(write: ArtifactWrite, location: ArtifactLocation, there: (tx: Tx) => Promise<boolean>) {
    return database.work.transaction(async (tx) => {
      await holdContent(tx, write.sha256);
      if (!(await there(tx))) return null;
      const saved = await saveArtifact(tx, { ...write, location });
      if (saved === null) throw new LeaseLost(write.jobId, write.attempt);
      return saved;
    });
  }

  async function unneeded(location: ArtifactLocation, store: ContentStore | null): Promise<string[]> {
    const cursor = cursors.get(location) ?? null;
    if (store === null) {
      const kept = await keptContents(database.maintenance, cursor ?? '', SWEEP_PAGE);
      cursors.set(location, kept.length < SWEEP_PAGE ? null : (kept.at(-1) ?? null));
      return unneededContents(database.maintenance, kept, location);
    }
    const page = await store.page(cursor);
    cursors.set(location, page.cursor);
    const old = page.contents.filter(({ storedAt }) => storedAt <= Date.now() - graceMs);
    return old.length === 0
      ? []
      : unneededContents(
          database.maintenance,
          old.map((c) => c.sha256),
          location,
        );
  }

  /** A transaction takes the contents first and looks in a later statement: by then it sees every row written under them. */
  async function remove(sha256s: readonly string[], location: ArtifactLocation, store: ContentStore | null) {
    return database.maintenance.transaction(async (tx) => {
      const taken = await takeContents(tx, sha256s);
      const going = taken.length === 0 ? [] : await unneededContents(tx, taken, location);
      if (store) await Promise.all(going.map((sha256) => store.remove(sha256)));
      else if (going.length > 0) await removeContents(tx, going);
      return going.length;
    });
  }

  async function sweepPlace(location: ArtifactLocation, store: ContentStore | null): Promise<number> {
    const going = await unneeded(location, store);
    let removed = 0;
    for (let at = 0; at < going.length; at += REMOVE_BATCH) {
      removed += await remove(going.slice(at, at + REMOVE_BATCH), location, store);
    }
    await store?.removeRemains(REMAINS_MS);
    return removed;
  }

  return {
    gathering: contents.gathering,

    async store(write) {
      const location = contents.placeFor(write.bytes);
      const store = await contents.store(location);
      for (let tries = 1; tries <= MAX_TRIES; tries++) {
        await store?.put(write.sha256, write.content);
        const saved = await writeRow(write, location, async (tx) => {
          if (store) return store.has(write.sha256);
          await keepContent(tx, write.sha256, write.content as Uint8Array);
          return true;
        });
        if (saved === null) continue;
        announce(channel, saved.changes);
        const { jobId, name, mediaType, bytes, sha256 } = write;
        const createdAt = saved.createdAt ?? (await artifactOf(database.work, jobId, name))?.createdAt ?? '';
        return { jobId, name, mediaType, bytes, sha256, location, createdAt };
      }
      throw new Unavailable('the content of an artifact was removed again and again while it was stored');
    },

    async sweep() {
      let removed = await sweepPlace('database', null);
      const files = await contents.store('file');
      if (files) removed += await sweepPlace('file', files);
      if (performance.now() - s3At < (graceMs === 0 ? 0 : S3_EVERY_MS)) return removed;
      s3At = performance.now();
      const s3 = await contents.store('s3');
      return s3 ? removed + (await sweepPlace('s3', s3)) : removed;
    },

    async clear() {
      await (await contents.store('file'))?.removeRemains(0);
    },

    link: async (artifact) => artifactPath(await sharedSecret(), artifact, Date.now()),

    async open(pathAndQuery) {
      const link = readArtifactPath(await sharedSecret(), pathAndQuery, Date.now());
      if (link === null) return 'refused';
      const find = () => (textProblem(link.name) ? null : artifactOf(database.read, link.jobId, link.name));
      const row = await find();
      // A name that was stored anew is another artifact.
      if (row?.sha256 !== link.sha256) return null;
      const stream = await contents.open(database.read, row.location, row.sha256);
      if (stream) return { ...row, stream, expires: link.expires };
      // Record and content may just have gone together; else the settings are not those it was stored with, or it is lost.
      if ((await find())?.sha256 !== link.sha256) return null;
      throw new Error(`the content ${row.sha256} of an artifact is not in its place (${row.location})`);
    },
  };
}
