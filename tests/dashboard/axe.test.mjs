// No page has a serious finding of axe, in light and in dark.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { allPages, context, endBrowser, open, settled } from './lab.mjs';

after(endBrowser);

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const GRAVE = ['serious', 'critical'];

/** Grave findings of the page as it is now, in words. */
async function findings(page) {
  const { violations } = await page.evaluate(async source => {
    // The page forbids inline scripts; what the test evaluates is none.
    if (!globalThis.axe) (0, eval)(source);
    return globalThis.axe.run(document, { resultTypes: ['violations'] });
  }, axe);
  return violations
    .filter(one => GRAVE.includes(one.impact))
    .map(
      one =>
        `${one.id}: ${one.nodes
          .slice(0, 3)
          .map(node => `${node.target} ${node.failureSummary}`)
          .join(' | ')}`,
    );
}

for (const colorScheme of ['light', 'dark']) {
  for (const { name, path } of await allPages()) {
    test(`${name}, ${colorScheme}: no grave finding`, async () => {
      const where = await context({ colorScheme, bypassCSP: true });
      const { page } = await open(where, path);
      await settled(page);
      assert.deepEqual(await findings(page), []);
      await where.close();
    });
  }

  test(`dialogs, ${colorScheme}: no grave finding`, async () => {
    const where = await context({ colorScheme, bypassCSP: true });
    const { page } = await open(where, '/ui/jobs');
    await settled(page);
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.click('[data-action=cancel]');
    await page.waitForSelector('dialog[open] .sentence:not(.skeleton)');
    assert.deepEqual(await findings(page), []);
    await where.close();
  });
}
