// What people type as a filter of jobs, and the address that says the same.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { context, endBrowser, open, settled } from './lab.mjs';

after(endBrowser);

const CASES = [
  ['stage:submit,running', { stage: ['submit,running'] }],
  ['health:!success,!unknown order:oldest', { health: ['!success,!unknown'], order: ['oldest'] }],
  ['kernel=v6.6 kv:compiler=gcc-14', { kv: ['kernel=v6.6', 'compiler=gcc-14'] }],
  ['signature:"BUG: a page fault*"', { signature: ['BUG: a page fault*'] }],
  ['queue:a queue:b', { queue: ['a,b'] }],
  ['since:2026-01-02T03:04Z until:2026-01-03', { since_ms: ['1767323040000'], until_ms: ['1767398400000'] }],
];

test('a filter is in the address, and the address is the filter', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/jobs');
  await settled(page);
  for (const [text, wanted] of CASES) {
    await page.fill('#filter', text);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search);
    const found = await page.evaluate(() => {
      const query = new URLSearchParams(location.search);
      return Object.fromEntries([...new Set(query.keys())].map(name => [name, query.getAll(name)]));
    });
    assert.deepEqual(found, wanted, text);
    const shown = await page.inputValue('#filter');
    await page.fill('#filter', '');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !location.search);
    await page.fill('#filter', shown);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search);
    assert.deepEqual(
      await page.evaluate(() =>
        Object.fromEntries([...new URLSearchParams(location.search)].map(([name]) => [name, new URLSearchParams(location.search).getAll(name)])),
      ),
      wanted,
      shown,
    );
    await page.fill('#filter', '');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !location.search);
  }
  await where.close();
});

test('a word that is no filter is named, and nothing is asked', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/jobs');
  await settled(page);
  await page.fill('#filter', 'quue:ann stage:submit');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#filter-fault').textContent.includes('quue:ann'));
  assert.equal(await page.evaluate(() => location.search), '');
  await where.close();
});
