import { createReadStream } from 'node:fs';
import { CsvError, parse } from 'csv-parse';
import { NonRetryableError } from 'waymark';

/** A place in a CSV file: everything before it is done. */
export type Place = {
  byte: number;
  line: number;
};

export const FILE_START: Place = { byte: 0, line: 0 };

export interface CsvRow {
  /** Line on which the row ends, counted from 1. */
  line: number;
  fields: string[];
}

/**
 * Rows of a CSV file behind `place`, each with the place behind it. Reading goes on at that byte: what lies before is
 * not read again, however large the file. Memory stays small: rows are pulled as they are needed.
 */
export async function* csvRows(
  file: string,
  place: Place,
  { signal }: { signal: AbortSignal },
): AsyncGenerator<{ value: CsvRow; cursor: Place }> {
  const bytes = createReadStream(file, { start: place.byte, signal });
  const parser = bytes.pipe(
    parse({
      info: true,
      bom: place.byte === 0,
      skip_empty_lines: true,
      // Bad rows are for the caller to judge; only a quote that never closes stops the parser, and not at 2 GB.
      relax_column_count: true,
      relax_quotes: true,
      max_record_size: 1024 * 1024,
    }),
  );
  bytes.once('error', (error) => parser.destroy(error));
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: string[];
      info: { bytes: number; lines: number };
    }>) {
      const cursor = { byte: place.byte + info.bytes, line: place.line + info.lines };
      yield { value: { line: cursor.line, fields: record }, cursor };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // The file will not get better by trying again.
    const options = { code: 'CSV_UNREADABLE', cause: error };
    throw new NonRetryableError(`the CSV cannot be read behind line ${place.line + 1}: ${error.message}`, options);
  } finally {
    bytes.destroy();
    parser.destroy();
  }
}
