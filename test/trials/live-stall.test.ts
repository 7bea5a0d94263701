import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { trial } from './bench.ts';

const EVENTS = 1_000;
const BYTES = 50_000;
const STALLED = 50;
/** Kept for them, it would be 2,500 MB; a garbage collector on a busy machine lets some tens stand. */
const GROWTH_MB = 150;
const FACTS = `subscription ($id: ID!) {
  jobEvents(id: $id) { seq ... on CheckpointSaved { checkpoint { data } } }
}`;

afterAll(cleanUp);

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

/** A socket that has subscribed, and what it was told. */
async function follow(url: string, id: string): Promise<{ socket: WebSocket; seqs: number[]; ended: Promise<void> }> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const seqs: number[] = [];
  await once(socket, 'open');
  const acknowledged = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await acknowledged;
  const ended = new Promise<void>((resolve) => {
    socket.on('message', (text) => {
      const { type, payload } = JSON.parse(String(text));
      if (type === 'next') seqs.push(payload.data.jobEvents.seq);
      if (type === 'complete') resolve();
    });
  });
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: FACTS, variables: { id } } }));
  return { socket, seqs, ended };
}

describePostgres('clients that do not read', () => {
  test(`P15: ${EVENTS} events of ${BYTES / 1_000} kB to each of ${STALLED} stalled sockets take no memory of the API and nothing from others`, {
    timeout: 120_000,
  }, async (ctx) => {
    const t = await trial(ctx);
    await t.worker();
    const { pid, url } = t.first;
    /** Runs a job to its end under one that reads, and so many that do not. Returns the most memory that the API took. */
    const run = async (stalled: number): Promise<number> => {
      const { id } = await t.client.submit('big', { checkpoints: EVENTS, each: BYTES }, { delay: '3s' });
      const healthy = await follow(url, id);
      const others = await Promise.all(Array.from({ length: stalled }, () => follow(url, id)));
      ctx.onTestFinished(() => [healthy, ...others].forEach(({ socket }) => void socket.terminate()));
      await eventually(() => expect([healthy, ...others].every(({ seqs }) => seqs.length === 1)).toBe(true));
      for (const { socket } of others) socket.pause();
      let most = 0;
      const looking = setInterval(async () => {
        most = Math.max(most, await residentMb(pid));
      }, 50);
      await within(60_000, healthy.ended, 'the end of the healthy stream');
      clearInterval(looking);
      expect(healthy.seqs).toEqual((await t.events(id)).map((_, i) => i + 1));
      for (const { seqs } of others) expect(seqs).toEqual([1]);
      return most;
    };
    const alone = await run(0);
    const among = await run(STALLED);
    console.log({ alone, among });
    expect(among - alone).toBeLessThan(GROWTH_MB);
  });
});
