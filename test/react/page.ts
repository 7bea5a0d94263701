import './dom.ts';
import { act, cleanup, renderHook } from '@testing-library/react';
import { createElement, type ReactNode } from 'react';
import { afterEach, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { createClient, type WaymarkClient } from '../../src/client/index.ts';
import { WaymarkProvider } from '../../src/react/index.ts';

afterEach(cleanup);

export function connect(
  url: string,
  options: Partial<Parameters<typeof createClient>[0]> = {},
): WaymarkClient<unknown> {
  const client = createClient({ url, webSocket: WebSocket, retryTransportAfter: '100ms', ...options });
  onTestFinished(() => client.close());
  return client;
}

/** A component that does nothing but use a hook; `renders` keeps what it gave, the last one last. */
export function mount<R, P>(
  client: WaymarkClient<unknown>,
  use: (props: P) => R,
  { initialProps, strict = false }: { initialProps?: P; strict?: boolean } = {},
) {
  const renders: R[] = [];
  const wrapper = ({ children }: { children: ReactNode }) => createElement(WaymarkProvider, { client }, children);
  const hook = renderHook(
    (props: P) => {
      const result = use(props);
      renders.push(result);
      return result;
    },
    { wrapper, reactStrictMode: strict, ...(initialProps === undefined ? {} : { initialProps }) },
  );
  return {
    renders,
    now: () => renders.at(-1) as R,
    rerender: hook.rerender,
    unmount: hook.unmount,
  };
}

export { act };
