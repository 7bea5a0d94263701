import { newUuid } from '../core/ids.ts';
import { definitionDigest, type TaskDefinition } from '../core/task.ts';

/** The stored form of a definition. */
export function taskRow(definition: TaskDefinition) {
  const text = JSON.stringify(definition);
  return { id: newUuid(), name: definition.name, digest: definitionDigest(definition), definition: text };
}
