// Takes each page in light and in dark, with a clock that stands: `node screenshots.mjs [folder]`.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allPages, context, endBrowser, get, settled } from './lab.mjs';
import { smaller } from './palette.mjs';

const BYTES_MOST = 2 << 20;
/** Pages that look like others. */
const LEFT_OUT = ['jobs by a filter', 'no page', 'queues'];
const folder = process.argv[2] ?? 'screenshots';
await mkdir(folder, { recursive: true });
const { at_ms } = await get('overview');
let bytes = 0;
for (const colorScheme of ['light', 'dark']) {
  const where = await context({ colorScheme, reducedMotion: 'reduce' });
  await where.clock.setFixedTime(at_ms);
  for (const { name, path } of (await allPages()).filter(one => !LEFT_OUT.includes(one.name))) {
    const page = await where.newPage();
    await page.goto(path);
    await settled(page);
    if (name === 'before a submit') {
      await page.click('button:has-text("Check")');
      await page.waitForSelector('text=would be accepted');
    }
    const file = join(folder, `${name.replaceAll(' ', '-')}-${colorScheme}.png`);
    const picture = smaller(await page.screenshot({ animations: 'disabled', caret: 'hide' }));
    await writeFile(file, picture);
    bytes += picture.length;
    await page.close();
  }
  await where.close();
}
await endBrowser();
console.log(`${folder}: ${Math.ceil(bytes / 1024)} KiB`);
if (bytes > BYTES_MOST) throw new Error(`the pictures have more than ${BYTES_MOST >> 10} KiB`);
