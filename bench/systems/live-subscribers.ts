import { quantile } from '../lib/figures.ts';
import { type FromSubscribers, now, type ToSubscribers } from '../lib/live-protocol.ts';
import { type Arrival, LiveSocket } from './live-socket.ts';

/** All subscribers, in a process of their own. */
const say = (message: FromSubscribers): void => void process.send?.(message);
let failed = false;

/** The first failure is the reason of all others. */
function fail(error: Error): void {
  if (!failed) say({ kind: 'failed', message: String(error.stack ?? error) });
  failed = true;
}

/** Handshakes under way: more would wait in the backlog of the listening socket, or be refused there. */
const AT_ONCE = 100;

let sockets: LiveSocket[] = [];
let expected = 0;
let delays: number[] = [];

function onArrivals(arrivals: readonly Arrival[]): void {
  const at = now();
  for (const { sentAt } of arrivals) delays.push((at - sentAt) / 1e6);
  if (delays.length < expected || arrivals.length === 0) return;
  if (delays.length > expected) fail(new Error(`${delays.length} were delivered, not ${expected}`));
  else say({ kind: 'delivered', last: at, p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) });
}

async function subscribe(message: Extract<ToSubscribers, { kind: 'subscribe' }>): Promise<void> {
  const { url, field, cursors } = message;
  let next = 0;
  const opener = async () => {
    while (next < message.sockets) {
      const cursor = cursors.length > 0 ? cursors[next % cursors.length] : undefined;
      next++;
      sockets.push(await LiveSocket.open(url, field, cursor, onArrivals, fail));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, opener));
  say({ kind: 'subscribed' });
}

process.on('message', (message: ToSubscribers) => {
  if (message.kind === 'subscribe') {
    subscribe(message).catch(fail);
  } else if (message.kind === 'expect') {
    expected = message.deliveries;
    delays = [];
    say({ kind: 'expecting' });
  } else {
    const leaving = sockets;
    sockets = [];
    void Promise.all(leaving.map((socket) => socket.close())).then(() => say({ kind: 'left' }));
  }
});
process.on('disconnect', () => process.exit(0));
