/** How the program ends, for scripts. */
export const EXIT = {
  done: 0,
  /** The job FAILED. */
  failed: 1,
  /** Refused input, usage or settings. */
  refused: 2,
  /** The job was CANCELED. */
  canceled: 3,
  /** `--timeout` was reached while waiting; the job goes on. */
  timeout: 4,
  /** The service (or its database) cannot be reached; EX_UNAVAILABLE of sysexits.h. */
  unreachable: 69,
  /** A defect of Waymark itself; EX_SOFTWARE. */
  defect: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
