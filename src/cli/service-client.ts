import { type Command, Option } from 'commander';
import { WebSocket } from 'ws';
import { type ConnectionState, createClient, type WaymarkClient } from '../client/index.ts';
import { clientConfig } from '../config.ts';
import type { Io } from './io.ts';

/** Options of every command that speaks to a service. */
export interface ClientFlags {
  url?: string;
  as?: string;
  json?: boolean;
}

/** Adds them. What a flag says stands above the environment. */
export function withClientFlags(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'the GraphQL endpoint (WAYMARK_URL)'))
    .addOption(new Option('--as <actor>', 'act as this actor, while authentication is off (WAYMARK_ACTOR)'))
    .addOption(new Option('--json', 'print data for scripts'));
}

/**
 * Runs `use` with a client of the service that flags and environment name, and closes it.
 * @throws InvalidSettings
 */
export async function withClient<T>(
  io: Io,
  flags: ClientFlags,
  use: (client: WaymarkClient<unknown>) => Promise<T>,
  onConnection?: (state: ConnectionState) => void,
): Promise<T> {
  const config = clientConfig(io.env, { WAYMARK_URL: flags.url, WAYMARK_ACTOR: flags.as });
  const client = createClient({
    url: config.url,
    webSocket: WebSocket,
    ...(config.token === null ? {} : { token: config.token }),
    ...(config.actor === null ? {} : { actor: config.actor }),
    ...(onConnection ? { onConnection } : {}),
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
