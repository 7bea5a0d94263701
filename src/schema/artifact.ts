import type { ArtifactRow } from '../core/artifact.ts';
import { builder } from './builder.ts';

export const Artifact = builder.objectRef<ArtifactRow>('Artifact').implement({
  description: 'A deliverable of a job. The same name stored anew replaces it.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name within the job.' }),
    mediaType: t.exposeString('mediaType', { description: 'What it is: `text/csv`.' }),
    bytes: t.float({ description: 'Its size.', resolve: (a) => a.bytes }),
    sha256: t.exposeString('sha256', { description: 'sha256 of its content, in hex.' }),
    url: t.string({
      description:
        'Where to get it. Signed: whoever has the link needs no token, and it ends after about 15 minutes. Ask anew then.',
      resolve: async (a, _, { artifacts, baseUrl }) => baseUrl + (await artifacts.link(a)),
    }),
    createdAt: t.field({ type: 'DateTime', description: 'When it was stored.', resolve: (a) => a.createdAt }),
  }),
});
