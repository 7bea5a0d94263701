import { JSDOM } from 'jsdom';

/**
 * A page for React, to be imported before it. Only what React asks for: the service of a test runs in the same process,
 * with the sockets and the `fetch` of Node.
 */
const { window } = new JSDOM('<!doctype html><body></body>');
Object.assign(globalThis, { window, document: window.document });
// Node has one of its own from version 21 on.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: window.navigator });
