import { spawn } from 'node:child_process';
import { chown, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages } from './install-services.ts';
import { answersQuery, findBinaries, freePort, type Service, started, unprivileged } from './local-servers.ts';

const FOLDERS = ['/usr/sbin', '/usr/local/sbin'];

/** Starts a PgBouncer in transaction mode in front of the server of `url`, on a free port; installs it where it may. */
export async function startPgBouncer(url: string): Promise<Service | { missing: string }> {
  let bin = await findBinaries(['pgbouncer'], FOLDERS);
  if (bin === undefined && (await installPackages('pgbouncer'))) bin = await findBinaries(['pgbouncer'], FOLDERS);
  if (bin === undefined) return { missing: 'no pgbouncer to start' };
  const target = new URL(url);
  const identity = await unprivileged();
  const dir = await mkdtemp(join(tmpdir(), 'waymark-pgbouncer-'));
  if (identity.uid !== undefined) await chown(dir, identity.uid, identity.gid ?? identity.uid);
  const port = await freePort();
  const password = target.password === '' ? '' : ` password=${decodeURIComponent(target.password)}`;
  const config = join(dir, 'pgbouncer.ini');
  await writeFile(
    config,
    `[databases]
* = host=${target.hostname} port=${target.port || 5432} user=${target.username}${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
`,
  );
  const server = spawn(join(bin, 'pgbouncer'), [config], { ...identity, cwd: dir, stdio: 'ignore' });
  const through = Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href;
  return started(server, through, dir, () => answersQuery(through), 'SIGTERM');
}
