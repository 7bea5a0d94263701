/** The part of pino's logger that Waymark's floors use; the programs hand in pino. */
export interface Logger {
  debug(data: object, message: string): void;
  info(data: object, message: string): void;
  warn(data: object, message: string): void;
  error(data: object, message: string): void;
  /** Whether lines of a level are written at all; left out: they may be. */
  isLevelEnabled?(level: string): boolean;
}

/** Says nothing; the default of the library. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
};
