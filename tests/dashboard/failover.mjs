// Tells when a page goes on after the replica that feeds it died: `node failover.mjs`. It prints the address of that replica,
// reads a line that says that the replica is dead, and prints how long the page took.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { context, endBrowser, open, settled } from './lab.mjs';

const LONG_MS = 60_000;
const where = await context();
const { page } = await open(where, '/ui/health');
await settled(page);

/** The address of the replica that feeds the page; nothing while the page is not live, or as long as it is this one. */
const feeds = dead => {
  if (!document.querySelector('#live-note')?.textContent.includes('●live')) return undefined;
  const rows = [...document.querySelectorAll('tr[data-row]')];
  const row = rows.find(one => one.textContent.includes('answers this page'));
  const address = row?.querySelector('td.id').textContent.trim();
  return address === dead ? undefined : address;
};
const fed = dead => page.waitForFunction(feeds, dead, { timeout: LONG_MS }).then(found => found.jsonValue());

const first = await fed(null);
console.log(first);
const lines = createInterface({ input: process.stdin });
// The input closes without a line when the test that started this script has died.
if (!(await Promise.race([once(lines, 'line'), once(lines, 'close')])).length) throw new Error('no line says that the replica is dead');
const begin = Date.now();
const next = await fed(first);
console.log(`The page goes on after ${Date.now() - begin} ms, with ${next}.`);
await endBrowser();
process.exit();
