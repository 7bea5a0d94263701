'use client';
import { useCallback, useRef, useState } from 'react';

interface ActionState {
  isActing: boolean;
  error: Error | undefined;
}

const QUIET: ActionState = { isActing: false, error: undefined };

/**
 * Runs calls that change something. What it says, and `keep`, is of the last one: an earlier one that is answered late,
 * or after `clear`, changes nothing.
 */
export function useAction(): ActionState & {
  act<R>(call: () => Promise<R>, keep?: (value: R) => void): Promise<R>;
  clear(): void;
} {
  const [state, setState] = useState<ActionState>(QUIET);
  const turn = useRef(0);
  const clear = useCallback(() => {
    turn.current++;
    setState(QUIET);
  }, []);
  const act = useCallback(async <R>(call: () => Promise<R>, keep?: (value: R) => void): Promise<R> => {
    const mine = ++turn.current;
    setState({ isActing: true, error: undefined });
    try {
      const value = await call();
      if (mine === turn.current) {
        keep?.(value);
        setState(QUIET);
      }
      return value;
    } catch (error) {
      if (mine === turn.current)
        setState({ isActing: false, error: error instanceof Error ? error : new Error(String(error)) });
      throw error;
    }
  }, []);
  return { ...state, act, clear };
}
