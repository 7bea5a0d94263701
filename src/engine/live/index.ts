export { createLiveHub } from './hub.ts';
export type { ChangeFilter, JobsChanged, LiveHub, LiveHubOptions, LiveStats } from './types.ts';
