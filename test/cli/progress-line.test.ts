import { describe, expect, test } from 'vitest';
import { createProgressDisplay } from '../../src/cli/progress-line.ts';
import type { Job } from '../../src/client/index.ts';

function job(current: number, more: Partial<Job> = {}): Job {
  const progress = {
    stage: 'import',
    stageIndex: 2,
    stageCount: 3,
    nextStage: null,
    current,
    total: 100_000,
    unit: 'rows',
    message: 'line\u001b[31m\n7',
    fraction: current / 100_000,
    ratePerSecond: 8_400,
    etaSeconds: 5.2,
    data: null,
    updatedAt: '',
  };
  return { state: 'RUNNING', attemptNumber: 1, error: null, progress, ...more } as Job;
}

function displayOn(output: { isTTY?: boolean; columns?: number }, env = {}) {
  let text = '';
  const stderr = {
    ...output,
    write(chunk: string) {
      text += chunk;
    },
  };
  const display = createProgressDisplay({ env, stdout: { write() {} }, stderr });
  return { display, text: () => text };
}

describe('the progress line', () => {
  test('says state, stage, share, counts, rate and time left, in one line', () => {
    const { display, text } = displayOn({});
    display.show(job(52_000));
    expect(text()).toBe(
      'RUNNING  import 3/3  ██████████░░░░░░░░░░ 52 %  52,000 of 100,000 rows  8,400/s  6 s left  line [31m 7\n',
    );
  });

  test('says what a waiting job waits for; what is to stay stays above it', () => {
    const waitingOn = { kind: 'REVIEW', detail: 'Waits for a decision: Publish?', until: null, approvals: [] };
    const waiting = job(0, { state: 'WAITING_FOR_REVIEW', progress: null, waitingOn });
    const pipe = displayOn({});
    pipe.display.show(waiting);
    pipe.display.say('Review wanted');
    expect(pipe.text()).toBe('WAITING_FOR_REVIEW  Waits for a decision: Publish?\nReview wanted\n');
    const terminal = displayOn({ isTTY: true, columns: 80 }, { NO_COLOR: '1' });
    terminal.display.show(waiting);
    terminal.display.say('Review wanted');
    terminal.display.finish();
    expect(terminal.text()).toBe('\r\x1b[2KWAITING_FOR_REVIEW  Waits for a decision: Publish?\r\x1b[2KReview wanted\n');
  });

  test('on a pipe a line comes only with something new: a state, a stage, a tenth of the way', () => {
    const { display, text } = displayOn({});
    for (const n of [0, 1, 9_999, 10_000, 19_999, 20_000]) display.show(job(n));
    display.show(job(20_000, { state: 'COMPLETED' }));
    expect(
      text()
        .trim()
        .split('\n')
        .map((line) => /(\d+) %/.exec(line)?.[1]),
    ).toEqual(['0', '10', '20', '20']);
  });

  test('on a terminal one line is drawn again and again, never wider than the terminal', () => {
    const { display, text } = displayOn({ isTTY: true, columns: 40 }, { NO_COLOR: '1' });
    display.show(job(1));
    display.show(job(99_000));
    display.finish();
    display.finish();
    const [before, ...lines] = text().split('\r\x1b[2K');
    expect(before).toBe('');
    expect(lines).toHaveLength(2);
    for (const line of lines) expect([...line.trimEnd()].length).toBeLessThanOrEqual(39);
    expect(text().match(/\n/g)).toHaveLength(1);
  });

  test('NO_COLOR is honoured; without it a terminal gets colors', () => {
    const plain = displayOn({ isTTY: true }, { NO_COLOR: '1' });
    plain.display.show(job(1));
    expect(plain.text()).not.toContain('\x1b[3');
    const colored = displayOn({ isTTY: true });
    colored.display.show(job(1));
    expect(colored.text()).toContain('\x1b[36mRUNNING\x1b[39m');
  });

  test('what a handler says cannot move the cursor', () => {
    const { display, text } = displayOn({});
    display.show(job(1));
    expect(text()).not.toContain('\x1b');
  });
});
