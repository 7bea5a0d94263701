import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Program, start } from '../../cli/program.ts';
import { eventually, within } from '../../support/eventually.ts';
import type { ServiceName } from '../settings.ts';

/** One start of a process, from then to its end. */
export interface Life {
  readonly service: ServiceName;
  readonly pid: number;
  /** By the clock of this machine, in milliseconds. */
  readonly from: number;
  to: number | null;
  /** Exit code or signal, once it has ended. */
  code: number | string | null;
  /** The bench wanted it to end. */
  asked: boolean;
  readonly log: () => string;
}

/** One place of the cluster: a process that is started again whenever it ends. */
export class Service {
  readonly name: ServiceName;
  readonly port: number;
  readonly lives: Life[] = [];
  readonly #args: readonly string[];
  readonly #env: Record<string, string>;
  #program: Program | undefined;
  #closing = false;

  constructor(name: ServiceName, port: number, args: readonly string[], env: Record<string, string>) {
    this.name = name;
    this.port = port;
    this.#args = args;
    this.#env = { ...env, PORT: `${port}` };
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get life(): Life {
    const life = this.lives.at(-1);
    if (!life) throw new Error(`${this.name} was never started`);
    return life;
  }

  start(): void {
    const program = start(this.#args, this.#env);
    const life: Life = {
      service: this.name,
      pid: program.pid,
      from: Date.now(),
      to: null,
      code: null,
      asked: false,
      log: program.stderr,
    };
    this.#program = program;
    this.lives.push(life);
    void program.ended.then(({ code }) => {
      life.to = Date.now();
      life.code = code;
      // That is a finding; the round goes on as if somebody watched over the process.
      if (!life.asked && !this.#closing) this.start();
    });
  }

  /** Resolves when it listens and, a worker, is registered. */
  async ready(timeoutMs = 60_000): Promise<void> {
    await eventually(
      () => {
        const program = this.#program;
        if (!program?.stdout().includes('/healthz')) throw new Error(`${this.name} does not come up`);
      },
      { timeoutMs },
    );
  }

  /** Ends it and gives its exit code or signal. */
  async end(signal: NodeJS.Signals, timeoutMs: number): Promise<number | string> {
    const program = this.#program as Program;
    this.life.asked = true;
    program.kill(signal);
    const { code } = await within(timeoutMs, program.ended, `the end of ${this.name} after ${signal}`);
    return code;
  }

  /** SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#program?.kill(signal);
  }

  /** Ends it for good. */
  async close(signal: NodeJS.Signals, timeoutMs: number): Promise<number | string> {
    this.#closing = true;
    return this.end(signal, timeoutMs);
  }

  /** What all its lives wrote. */
  async writeLogs(dir: string): Promise<void> {
    const name = (n: number) => join(dir, `${this.name}-${n + 1}.log`);
    await Promise.all(this.lives.map((life, n) => writeFile(name(n), life.log())));
  }
}

/** Open descriptors of a process; null where the system does not say. */
export async function openFiles(pid: number): Promise<number | null> {
  return readdir(`/proc/${pid}/fd`).then(
    (names) => names.length,
    () => null,
  );
}

/** Whether a process is stopped; null where the system does not say. */
export async function isStopped(pid: number): Promise<boolean | null> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(
    (text) => text.slice(text.lastIndexOf(')') + 2).startsWith('T'),
    () => null,
  );
}
