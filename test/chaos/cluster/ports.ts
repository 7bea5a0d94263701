import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to outgoing connections: such a port is still free when its owner comes back. */
const FROM = 20_000;
const TO = 32_000;

/** A free port of 127.0.0.1 for something that is killed and started again. By chance, so that rounds do not meet. */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = FROM + Math.floor(Math.random() * (TO - FROM));
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    server.close();
    return true;
  } catch {
    return false;
  }
}
