import { createInterface } from 'node:readline';
import { type DirOwner, ownDataDir } from '../../../src/db/data-dir.ts';

/** Lines in: `own DIR ADDRESS`, `address URL`, `release`. Each is answered by one line. */
let owner: DirOwner | undefined;

async function obey(line: string): Promise<object> {
  const [verb, argument = '', address = null] = line.split(' ');
  try {
    if (verb === 'own') owner = await ownDataDir(argument, { address });
    else if (verb === 'address') owner?.setAddress(argument);
    else await owner?.release();
    return { ok: true };
  } catch (error) {
    return { ok: false, name: (error as Error).name, message: (error as Error).message };
  }
}

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await obey(line)));
