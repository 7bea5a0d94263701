import { WebSocket } from 'ws';

/** Recipes are for browsers, which have a WebSocket of their own; Node has one from version 22 on. To be imported first. */
Object.assign(globalThis, { WebSocket });
