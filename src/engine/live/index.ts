export { createLiveHub } from './hub.ts';
export type {
  ChangeFilter,
  GraphChanged,
  GraphView,
  JobsChanged,
  LiveHub,
  LiveHubOptions,
  LiveStats,
} from './types.ts';
