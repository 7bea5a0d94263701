/** As much as is used: the package's own types would give the whole program those of a browser. */
declare module 'jsdom' {
  export class JSDOM {
    constructor(html: string, options?: { url?: string });
    readonly window: { readonly document: object; readonly navigator: object; close(): void };
  }
}
