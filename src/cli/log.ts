import { pino } from 'pino';
import type { Config } from '../config.ts';
import type { Logger } from '../core/log.ts';
import type { Io } from './io.ts';

/** The program's log: JSON lines on stderr (stdout is for data). Warnings of the settings are its first lines. */
export function createLog(config: Config, io: Io): Logger {
  const options = { level: config.logLevel, timestamp: pino.stdTimeFunctions.isoTime };
  const log = pino(options, { write: (line) => void io.stderr.write(line) });
  for (const warning of config.warnings) log.warn({}, warning);
  return log;
}
