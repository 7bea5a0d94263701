'use client';
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from 'react';
import type { WaymarkClient } from '../client/index.ts';

const ClientContext = createContext<WaymarkClient<unknown> | null>(null);

export interface WaymarkProviderProps<T = unknown> {
  /** Made once, outside of components: its streams are shared by all that is below. */
  client: WaymarkClient<T>;
  children?: ReactNode;
}

/** Gives the hooks below it their client. It neither opens nor closes it. */
export function WaymarkProvider<T = unknown>({ client, children }: WaymarkProviderProps<T>): ReactElement {
  return createElement(ClientContext.Provider, { value: client as unknown as WaymarkClient<unknown> }, children);
}

/** The client of the provider above. @throws Error without one */
export function useWaymark<T = unknown>(): WaymarkClient<T> {
  const client = useContext(ClientContext);
  if (!client) throw new Error('a hook of waymark/react was used outside of <WaymarkProvider client={…}>');
  return client as unknown as WaymarkClient<T>;
}
