import { z } from 'zod';
import { url, visible } from './setting-values.ts';

/** The settings of the store for large artifacts, which are given together or not at all. */

/** Requests name the bucket in their path. */
export interface S3Settings {
  readonly url: string;
  readonly bucket: string;
  readonly region: string;
  readonly keyId: string;
  readonly secret: string;
}

export const S3_SCHEMA = {
  WAYMARK_S3_URL: url(['http', 'https']).nullable(),
  WAYMARK_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket: 3 to 63 small letters, digits, . or -')
    .nullable(),
  WAYMARK_S3_REGION: z.string().regex(/^[\w-]+$/, 'must be a region such as "eu-central-1"'),
  WAYMARK_S3_KEY_ID: visible().nullable(),
  WAYMARK_S3_SECRET: visible().nullable(),
};

const TOGETHER = ['WAYMARK_S3_URL', 'WAYMARK_S3_BUCKET', 'WAYMARK_S3_KEY_ID', 'WAYMARK_S3_SECRET'];

/** What is missing beside what is given. */
export function s3Problems(given: Readonly<Record<string, string | null>>): string[] {
  const missing = TOGETHER.filter((name) => !given[name]);
  if (missing.length === TOGETHER.length) return [];
  return missing.map((name) => `${name} must be set, too: ${TOGETHER.join(', ')} belong together`);
}

/** The settings in use; null when there are none. */
export function s3Of(parsed: { [K in keyof typeof S3_SCHEMA]: string | null }): S3Settings | null {
  const { WAYMARK_S3_URL, WAYMARK_S3_BUCKET, WAYMARK_S3_KEY_ID, WAYMARK_S3_SECRET, WAYMARK_S3_REGION } = parsed;
  if (!WAYMARK_S3_URL || !WAYMARK_S3_BUCKET || !WAYMARK_S3_KEY_ID || !WAYMARK_S3_SECRET) return null;
  return Object.freeze({
    url: WAYMARK_S3_URL,
    bucket: WAYMARK_S3_BUCKET,
    region: WAYMARK_S3_REGION ?? '',
    keyId: WAYMARK_S3_KEY_ID,
    secret: WAYMARK_S3_SECRET,
  });
}
