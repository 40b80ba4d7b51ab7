// Each page shows its heading and its main facts, in one column of a phone too, and its console stays empty.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allPages, context, endBrowser, open, settled } from './lab.mjs';

after(endBrowser);

for (const { name, path, heading, words } of await allPages()) {
  test(`${name}: the heading and the main facts`, async () => {
    const where = await context();
    const { page, faults } = await open(where, path);
    await settled(page);
    assert.equal(await page.textContent('h1'), heading);
    for (const word of words) await page.waitForFunction(wanted => document.querySelector('main').textContent.includes(wanted), word);
    assert.match(await page.title(), /fairlead$/);
    assert.deepEqual(faults, []);
    await where.close();
  });

  test(`${name}: no scrolling sideways at 390 px`, async () => {
    const where = await context({ viewport: { width: 390, height: 800 } });
    const { page, faults } = await open(where, path);
    await settled(page);
    const { wide, widest } = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      widest: [...document.querySelectorAll('body *')]
        .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.wide, .virtual, nav, pre, .unseen, .map'))
        .slice(0, 3)
        .map(one => one.outerHTML.slice(0, 120)),
    }));
    assert.deepEqual([wide, widest], [0, []]);
    assert.deepEqual(faults, []);
    await where.close();
  });
}
