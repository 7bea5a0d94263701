import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';

/** One at a time: the package manager refuses a second one while it works. */
let last: Promise<unknown> = Promise.resolve();

/** Installs Debian packages, where this process may; true when that went well. */
export function installPackages(...packages: string[]): Promise<boolean> {
  const mine = last.then(() => install(packages));
  last = mine.catch(() => {});
  return mine;
}

async function install(packages: string[]): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const isDebian = await access('/usr/bin/apt-get').then(
    () => true,
    () => false,
  );
  if (!isDebian) return false;
  console.log(`Not on this machine: installing Debian packages for the tests: ${packages.join(', ')}`);
  // A list that another process is just fetching is as good.
  await aptGet('update');
  return aptGet('-o', 'DPkg::Lock::Timeout=120', 'install', '--yes', '--no-install-recommends', ...packages);
}

async function aptGet(...args: string[]): Promise<boolean> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const [code] = await once(spawn('/usr/bin/apt-get', ['-q', ...args], { env, stdio: 'ignore' }), 'exit');
  return code === 0;
}
