import { createHash } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { trial } from './bench.ts';

const PIECES = 20;
const KILLS = 2;
const ARTIFACTS = `query ($id: ID!) { job(id: $id) { artifacts { name bytes sha256 url } } }`;

afterAll(cleanUp);

describePostgres('an artifact', () => {
  test('is there whole or not at all, however often its worker is killed while it comes, and any API serves it', {
    timeout: 120_000,
  }, async (ctx) => {
    const t = await trial(ctx, { WAYMARK_LEASE: '1s', WAYMARK_HEARTBEAT: '300ms', WAYMARK_SWEEP: '200ms' });
    const { file: ledger, lines } = await t.ledger();
    let worker = await t.worker();
    const { id } = await t.client.submit('deliver', { pieces: PIECES, ms: 100, ledger });
    for (let kill = 1; kill <= KILLS; kill++) {
      await eventually(
        () => expect(lines().filter(([, attempt]) => Number(attempt) === kill).length).toBeGreaterThan(PIECES / 4),
        { timeoutMs: 20_000 },
      );
      worker.kill('SIGKILL');
      await worker.ended;
      expect(await t.events(id)).not.toContain('ArtifactStored');
      worker = await t.worker();
    }
    expect(await t.ends(id)).toBe('COMPLETED');
    // What it made is not on its disk only.
    worker.kill('SIGKILL');
    t.first.kill('SIGKILL');
    await Promise.all([worker.ended, t.first.ended]);
    const api = await t.api();
    const { job } = await t.clientOf(api).request<{
      job: { artifacts: { name: string; bytes: number; sha256: string; url: string }[] };
    }>(ARTIFACTS, { id });
    const expected = Buffer.concat(Array.from({ length: PIECES }, (_, i) => Buffer.alloc(100_000, i)));
    const sha256 = createHash('sha256').update(expected).digest('hex');
    expect(job.artifacts).toMatchObject([{ name: 'pieces.bin', bytes: expected.length, sha256 }]);
    const response = await fetch(new URL(job.artifacts[0]?.url ?? '', api.url));
    expect(Buffer.from(await response.arrayBuffer()).equals(expected)).toBe(true);
    expect((await t.events(id)).filter((type) => type === 'ArtifactStored')).toHaveLength(1);
    const [contents] = await t.sql<{ n: number }[]>`select count(distinct sha256)::int as n from waymark.artifacts`;
    expect(contents?.n).toBe(1);
  });
});
