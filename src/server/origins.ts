/** Which pages may speak to the service. Programs send no Origin and are let through. */
export interface OriginRules {
  /** Origins (`https://app.example`) that may, besides the service's own. */
  allowed: readonly string[];
  /** Address that the service listens on. */
  host: string;
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether a request is refused. A foreign Origin always is. Listening on loopback, only loopback names (and those of
 * allowed origins) are taken as the service's own: else a page on `evil.example` could let its name point to
 * 127.0.0.1 and read everything as "same origin".
 */
export function isForeign(
  headers: { origin?: string | undefined; host?: string | undefined },
  rules: OriginRules,
): boolean {
  const { origin, host = '' } = headers;
  const trusted = rules.allowed.map(authority);
  const own = (name: string) => !isLoopback(rules.host) || isLoopback(hostname(name)) || trusted.includes(name);
  if (host !== '' && !own(host)) return true;
  if (origin === undefined || rules.allowed.includes(origin)) return false;
  return authority(origin) !== host || !own(host);
}

function authority(origin: string): string {
  try {
    return new URL(origin).host;
  } catch {
    return '';
  }
}

function hostname(host: string): string {
  return host.replace(/:\d+$/, '');
}
