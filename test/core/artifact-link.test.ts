import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { artifactNameProblem, mediaTypeProblem } from '../../src/core/artifact.ts';
import { artifactPath, LINK_MS, readArtifactPath } from '../../src/core/artifact-link.ts';

const ref = { jobId: '01900000-0000-7000-8000-000000000001', name: 'out/täglich 1.csv', sha256: 'a'.repeat(64) };
const NOW = Date.UTC(2026, 10, 29, 16, 2, 52);

describe('links to artifacts', () => {
  test('lead to what they were made for, for about 15 minutes', () => {
    const path = artifactPath('secret', ref, NOW);
    expect(path).toMatch(
      /^\/artifacts\/job_\w+\/out%2Ft%C3%A4glich%201\.csv\?sha256=a{64}&expires=\d+&signature=[\w-]+$/,
    );
    expect(readArtifactPath('secret', path, NOW)).toMatchObject(ref);
    expect(readArtifactPath('secret', path, NOW + LINK_MS - 1)).toMatchObject(ref);
    expect(readArtifactPath('secret', path, NOW + LINK_MS + 60_000)).toBeNull();
  });

  test('stay the same for a while', () => {
    expect(artifactPath('secret', ref, NOW + 5_000)).toBe(artifactPath('secret', ref, NOW));
    expect(artifactPath('secret', ref, NOW + 60_000)).not.toBe(artifactPath('secret', ref, NOW));
  });

  test.each([
    ['another secret', (path: string) => path, 'other'],
    ['another job', (path: string) => path.replace(/job_\w+/, 'job_01h2xcejqtf2nbrexx3vqjhp41'), 'secret'],
    ['another name', (path: string) => path.replace('out%2F', 'in%2F'), 'secret'],
    ['another content', (path: string) => path.replace('aaaa', 'aaab'), 'secret'],
    ['a later end', (path: string) => path.replace(/expires=\d/, 'expires=9'), 'secret'],
    ['no end', (path: string) => path.replace(/expires=\d+/, 'expires=Infinity'), 'secret'],
    ['no signature', (path: string) => path.replace(/&signature=.*/, ''), 'secret'],
    ['an empty signature', (path: string) => path.replace(/signature=.*/, 'signature='), 'secret'],
    ['a path below it', (path: string) => path.replace('?', '/x?'), 'secret'],
    ['a broken escape', (path: string) => path.replace('%2F', '%E4%'), 'secret'],
    ['no query', (path: string) => path.replace(/\?.*/, ''), 'secret'],
  ])('are refused with %s', (_, change, secret) => {
    expect(readArtifactPath(secret, change(artifactPath('secret', ref, NOW)), NOW)).toBeNull();
  });

  test('keep every name that an artifact may have, also through a URL parser', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (name) => {
        fc.pre(artifactNameProblem(name) === null);
        const url = new URL(artifactPath('secret', { ...ref, name }, NOW), 'http://127.0.0.1');
        expect(readArtifactPath('secret', url.pathname + url.search, NOW)).toMatchObject({ ...ref, name });
      }),
    );
  });
});

describe('what an artifact may be called', () => {
  test.each(['', '.', '..', 'a\nb', 'a\u0000b', '\ud800', 'x'.repeat(201), 7, null, undefined])('not %j', (name) => {
    expect(artifactNameProblem(name)).not.toBeNull();
  });
  test.each(['a', 'out/b.csv', '...', 'ü😀', '%2e%2e', 'x'.repeat(200)])('but %j', (name) => {
    expect(artifactNameProblem(name)).toBeNull();
  });
  test.each(['', 'text', 'text/', '/csv', 'text/csv\r\nx: y', 'text/csv; a', 7])('not of the type %j', (type) => {
    expect(mediaTypeProblem(type)).not.toBeNull();
  });
  test.each(['text/csv', 'text/html; charset=utf-8', 'image/svg+xml', 'a/b; c="d e"'])('but of %j', (type) => {
    expect(mediaTypeProblem(type)).toBeNull();
  });
});
