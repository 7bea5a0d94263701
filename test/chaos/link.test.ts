import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually, within } from '../support/eventually.ts';
import { Link } from './cluster/link.ts';

/** Says back what it is told. */
let server: Server;
let link: Link;
const accepted = new Set<Socket>();
const clients = new Set<Socket>();

beforeEach(async () => {
  server = createServer((socket) => {
    accepted.add(socket);
    socket.on('error', () => {}).on('close', () => accepted.delete(socket));
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  link = await Link.open('it', (server.address() as { port: number }).port);
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  clients.clear();
  await link.close();
  server.close();
});

async function open(): Promise<Socket> {
  const client = connect(link.port, '127.0.0.1');
  clients.add(client);
  client.on('error', () => {});
  await once(client, 'connect');
  return client;
}

async function answer(client: Socket, text: string): Promise<string> {
  client.write(text);
  const [data] = await within(5_000, once(client, 'data'), `the answer to ${text}`);
  return String(data);
}

/** The code of the error that ends a connection. */
function failureOf(client: Socket): Promise<string | undefined> {
  const failed = new Promise<string | undefined>((resolve) => {
    client.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
  return within(5_000, failed, 'the reset');
}

test('passes everything on, and the end of either side', async () => {
  const client = await open();
  expect(await answer(client, 'hello')).toBe('hello');
  client.end();
  await eventually(() => expect(accepted.size).toBe(0));
  const other = await open();
  expect(await answer(other, 'hello')).toBe('hello');
  for (const socket of accepted) socket.destroy();
  await within(5_000, once(other, 'close'), 'the end');
  expect(link.connections).toBe(0);
});

test('cuts connections by a reset, and those that are tried meanwhile', async () => {
  const client = await open();
  await answer(client, 'hello');
  const reset = failureOf(client);
  link.set({ kind: 'cut' });
  expect(await reset).toBe('ECONNRESET');
  expect(await failureOf(connect(link.port, '127.0.0.1'))).toBe('ECONNRESET');
  expect(link.touched).toBe(2);
  link.set({ kind: 'pass' });
  expect(await answer(await open(), 'again')).toBe('again');
});

test('a black hole swallows without a word; what it swallowed from stays silent, what it did not goes on', async () => {
  const [silent, spared, gone] = [await open(), await open(), await open()];
  for (const client of [silent, spared, gone]) await answer(client, 'hello');
  link.set({ kind: 'blackhole' });
  const heard: string[] = [];
  silent.on('data', (data) => heard.push(String(data)));
  silent.write('lost');
  await eventually(() => expect(link.touched).toBe(1));
  // The server is not told that one has gone, until the hole is.
  gone.destroy();
  const fresh = await open();
  fresh.write('lost, too');
  await eventually(() => expect(link.touched).toBe(2));
  expect(accepted.size).toBe(4);

  link.set({ kind: 'pass' });
  await eventually(() => expect(accepted.size).toBe(3));
  expect(await answer(spared, 'still here')).toBe('still here');
  silent.write('lost again');
  await eventually(() => expect(link.touched).toBe(3));
  expect(heard).toEqual([]);
  silent.destroy();
  fresh.destroy();
  await eventually(() => expect(accepted.size).toBe(1));
});

test('delays each piece', async () => {
  const client = await open();
  await answer(client, 'hello');
  link.set({ kind: 'delay', ms: 100 });
  const begin = performance.now();
  expect(await answer(client, 'slow')).toBe('slow');
  // There and back.
  expect(performance.now() - begin).toBeGreaterThanOrEqual(195);
  expect(link.touched).toBe(2);
});

test('lets so many bytes through a second', async () => {
  const client = await open();
  await answer(client, 'hello');
  link.set({ kind: 'throttle', bytesPerSecond: 10_000 });
  const begin = performance.now();
  let bytes = 0;
  const all = new Promise<void>((resolve) => {
    client.on('data', (data) => {
      bytes += data.length;
      if (bytes === 3_000) resolve();
    });
  });
  client.write('x'.repeat(3_000));
  await within(10_000, all, 'the answer');
  expect(performance.now() - begin).toBeGreaterThanOrEqual(290);
});
