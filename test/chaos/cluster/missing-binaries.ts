/** A server of our own cannot be started: its binaries are not on this machine. */
export class MissingBinaries extends Error {}
