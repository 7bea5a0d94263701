import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface PeopleCsv {
  file: string;
  rows: number;
  /** Line numbers (the header is line 1) of the rows that are good, ascending. */
  goodLines: number[];
  badRows: number;
}

/** Writes a CSV of people in which a few rows are bad in different ways: a wrong address, a wrong age, a missing column. */
export async function writePeopleCsv(file: string, rows: number): Promise<PeopleCsv> {
  const goodLines: number[] = [];
  function* lines() {
    yield 'name,email,age\n';
    for (let n = 1; n <= rows; n++) {
      const line = n + 1;
      const email = n % 500 === 0 ? `person${n} at example.com` : `person${n}@example${n % 7}.com`;
      const age = n % 777 === 0 ? 'unknown' : String(18 + (n % 70));
      const isShort = n % 9_999 === 0;
      if (!isShort && n % 500 !== 0 && n % 777 !== 0) goodLines.push(line);
      yield isShort ? `"Person, No. ${n}",${email}\n` : `"Person, No. ${n}",${email},${age}\n`;
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(file));
  return { file, rows, goodLines, badRows: rows - goodLines.length };
}
