import pc from 'picocolors';
import type { Environment } from '../config.ts';

/** A terminal or a pipe. */
export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** What the program gets from outside. Data goes to `stdout`; logs, live progress and complaints to `stderr`. */
export interface Io {
  env: Environment;
  stdout: Output;
  stderr: Output;
}

export type Colors = ReturnType<typeof pc.createColors>;

/** Colors for one stream: only on a terminal, and not with NO_COLOR (https://no-color.org) or TERM=dumb. */
export function colorsFor(output: Output, env: Environment): Colors {
  return pc.createColors(output.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb');
}

export function print(io: Io, text: string): void {
  io.stdout.write(`${text}\n`);
}

/** One JSON document on a line of its own: scripts read it with one parse. */
export function printJson(io: Io, value: unknown): void {
  print(io, JSON.stringify(value));
}

/** Columns padded to the widest cell. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  // What somebody else wrote, such as a title, must not break the line.
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.replace(/\p{Cc}/gu, ' ').padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [header, ...rows].map(line).join('\n');
}
