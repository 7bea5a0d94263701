import type { BeatAnswer } from '../engine/types.ts';
import { after, detached, monotonicMs } from './timing.ts';

/** What a beater is made of. Times are of `monotonicMs`. */
export interface BeaterParts {
  heartbeatMs: number;
  /** One beat: renews the lease and reads what the worker owns. */
  beat: () => Promise<BeatAnswer>;
  /** `sentAt`: when the beat was sent; the lease lasts at least from then. Answers may come out of order. */
  answered: (answer: BeatAnswer, sentAt: number) => void;
  failed: (error: unknown) => void;
}

/** Sends the beats of one boot. */
export interface Beater {
  /** Beats at once, then every `heartbeatMs`. A second call does nothing. */
  start(): void;
  /** Beats now, or as soon as the beat under way is answered: it may have been too early to see the news. */
  nudge(): void;
  /** Sends no more; what is still answered is dropped. A second call does nothing. */
  stop(): void;
}

/** A store that does not answer must not end the beats, nor be sent beats without end. */
const MAX_UNDER_WAY = 3;

/** Beats by a timer of this thread: whatever blocks its loop keeps the beats back, too. */
export function createTimerBeater({ heartbeatMs, beat, answered, failed }: BeaterParts): Beater {
  let prevent: (() => void) | null = null;
  let stopped = false;
  let underWay = 0;
  let again = false;

  function send(): void {
    if (stopped || underWay >= MAX_UNDER_WAY) return;
    underWay++;
    again = false;
    const sentAt = monotonicMs();
    detached(beat)
      .then(
        (answer) => {
          if (!stopped) answered(answer, sentAt);
        },
        (error: unknown) => {
          if (!stopped) failed(error);
        },
      )
      .finally(() => {
        underWay--;
        if (again) send();
      });
  }

  function tick(): void {
    prevent = after(heartbeatMs, tick);
    send();
  }

  return {
    start() {
      if (prevent === null && !stopped) tick();
    },
    nudge() {
      if (underWay > 0) again = true;
      else send();
    },
    stop() {
      stopped = true;
      prevent?.();
    },
  };
}
