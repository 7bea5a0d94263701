/**
 * The example tasks: `npm start` runs them. Copy what you need. A tasks file exports tasks, by name or as a default
 * list, and, if its tasks have tables of their own, `setup`.
 */
import { csvImport } from './tasks/csv-import.ts';
import { hello } from './tasks/hello.ts';
import { nightlyReport } from './tasks/nightly-report.ts';
import { drawImage, publishArticle } from './tasks/publish-article.ts';
import { reportBuild } from './tasks/report-build.ts';

export { createPeopleTable as setup } from './tasks/people.ts';

export default [hello, csvImport, reportBuild, drawImage, publishArticle, nightlyReport];
