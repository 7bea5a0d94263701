import { SETTINGS } from '../../src/config.ts';
import { JOB_STATES, type JobState, TERMINAL_STATES, TRANSITIONS } from '../../src/core/state.ts';

/**
 * The parts of the README that are made from the source, by the name of their markers: `<!-- name -->` … `<!-- /name -->`
 * on lines of their own.
 */
export const SECTIONS: Record<string, () => string> = {
  'state-chart': stateChart,
  settings: settingsTable,
};

/** The text between the markers of a section, or null when it is not there. */
export function sectionOf(readme: string, name: string): string | null {
  return readme.match(pattern(name))?.[2] ?? null;
}

/** `readme` with every section as it is made from the source. */
export function withSections(readme: string): string {
  return Object.entries(SECTIONS).reduce(
    // A function, since `$` means something in a replacement text.
    (text, [name, make]) => text.replace(pattern(name), (_all, open, _old, close) => `${open}\n${make()}\n\n${close}`),
    readme,
  );
}

const pattern = (name: string) => new RegExp(`^(<!-- ${name} -->\\n)([^]*?)^(<!-- /${name} -->)$`, 'm');

/** A Mermaid chart: one line per move, with the verbs that make it, in the order of the states. */
function stateChart(): string {
  const verbs = new Map<string, string[]>();
  for (const [verb, { from, to }] of Object.entries(TRANSITIONS)) {
    for (const source of from) {
      for (const target of to) {
        // A verb that can leave a job where it is does that to jobs which are there, and moves the others elsewhere.
        const stays = (from as readonly unknown[]).includes(target);
        if (stays && source !== target) continue;
        const move = `${source ?? '[*]'} --> ${target}`;
        verbs.set(move, [...(verbs.get(move) ?? []), verb]);
      }
    }
  }
  const order = (move: string) => JOB_STATES.indexOf(move.split(' ')[0] as JobState);
  const moves = [...verbs]
    .toSorted(([a], [b]) => order(a) - order(b))
    .map(([move, by]) => `  ${move}: ${by.join(', ')}`);
  const ends = TERMINAL_STATES.map((state) => `  ${state} --> [*]`);
  return ['```mermaid', 'stateDiagram-v2', ...moves, ...ends, '```'].join('\n');
}

function settingsTable(): string {
  const rows = SETTINGS.map(
    ({ name, default: value, meaning }) => `| \`${name}\` | ${value === null ? 'none' : `\`${value}\``} | ${meaning} |`,
  );
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}
