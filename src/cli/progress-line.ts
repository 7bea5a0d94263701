import type { Job } from '../client/index.ts';
import { type Colors, colorsFor, type Io, type Output } from './io.ts';

/** Shows a job while it is watched: on a terminal one line, redrawn; elsewhere a line whenever something is new. */
export interface ProgressDisplay {
  show(job: Job): void;
  /** Something about the connection, shown until the next value. */
  note(text: string): void;
  /** What stays: a line, or several, above those that follow. */
  say(text: string): void;
  /** Leaves the last line standing. */
  finish(): void;
}

const BAR = 20;
const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** On a pipe a line comes at each change of state or stage, and at each tenth of the way. */
export function createProgressDisplay(io: Io): ProgressDisplay {
  const out = io.stderr;
  const colors = colorsFor(out, io.env);
  return out.isTTY ? redrawn(out, colors) : plain(out, colors);
}

function redrawn(out: Output, colors: Colors): ProgressDisplay {
  let shown = false;
  const draw = (text: string) => {
    shown = true;
    out.write(`\r\x1b[2K${text}`);
  };
  return {
    show: (job) => draw(progressLine(job, colors, (out.columns ?? 80) - 1)),
    note: (text) => draw(colors.yellow(text)),
    say(text) {
      draw(`${text}\n`);
      shown = false;
    },
    finish() {
      if (shown) out.write('\n');
      shown = false;
    },
  };
}

function plain(out: Output, colors: Colors): ProgressDisplay {
  let last = '';
  return {
    show(job) {
      const tenth = Math.floor((job.progress?.fraction ?? 0) * 10);
      const news = [job.state, job.attemptNumber, job.progress?.stage, tenth, job.error?.at].join('|');
      if (news !== last) out.write(`${progressLine(job, colors)}\n`);
      last = news;
    },
    note: (text) => void out.write(`${text}\n`),
    say: (text) => void out.write(`${text}\n`),
    finish() {},
  };
}

/** `RUNNING  import 3/3  ██████████░░░░░░░░░░ 52 %  52,000 of 100,000 rows  8,400/s  6 s left` */
export function progressLine(job: Job, colors: Colors, width = Number.POSITIVE_INFINITY): string {
  const paint = {
    COMPLETED: colors.green,
    FAILED: colors.red,
    CANCELED: colors.yellow,
    RETRYING: colors.yellow,
  } as const;
  const parts = [...progressParts(job)];
  const text = clip([job.state, ...parts].join('  '), width);
  const painter = paint[job.state as keyof typeof paint] ?? colors.cyan;
  return painter(job.state) + text.slice(job.state.length);
}

function* progressParts(job: Job): Generator<string> {
  const { progress: p } = job;
  if (job.attemptNumber > 1) yield `attempt ${job.attemptNumber}`;
  if (job.state === 'RETRYING' && job.error) yield job.error.message;
  else if (job.waitingOn) yield job.waitingOn.detail;
  if (!p) return;
  if (p.stage) yield p.stageCount === null ? p.stage : `${p.stage} ${(p.stageIndex ?? 0) + 1}/${p.stageCount}`;
  if (p.fraction !== null) {
    const full = Math.round(p.fraction * BAR);
    yield `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${Math.floor(p.fraction * 100)} %`;
  }
  if (p.current !== null) {
    const of = p.total === null ? '' : ` of ${numbers.format(p.total)}`;
    yield `${numbers.format(p.current)}${of}${p.unit ? ` ${p.unit}` : ''}`;
  }
  if (job.state !== 'RUNNING') return;
  if (p.ratePerSecond !== null) yield `${numbers.format(p.ratePerSecond)}/s`;
  if (p.etaSeconds !== null) yield `${numbers.format(Math.ceil(p.etaSeconds))} s left`;
  if (p.message) yield p.message;
}

function clip(text: string, width: number): string {
  // What a handler says must not move the cursor.
  const clean = [...text.replace(/\p{Cc}/gu, ' ')];
  return clean.length <= width ? clean.join('') : `${clean.slice(0, Math.max(0, width - 1)).join('')}…`;
}
