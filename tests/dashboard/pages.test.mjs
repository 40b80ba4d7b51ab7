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

test('an empty lab says so, and nothing breaks', async () => {
  const where = await context();
  const lab = {
    name: 'first',
    version: '1',
    waiting: 0,
    running: 0,
    stages: {},
    not_ready: 0,
    ended_24h: {},
    store: { name: 'embedded', well: true },
    hosts_by_state: {},
  };
  const snapshot = { run: 'r', seq: 1, at_ms: Date.now(), tables: { lab: { lab }, queues: {}, hosts: {}, replicas: {} } };
  const body = `event: snapshot\nid: r/1\ndata: ${JSON.stringify(snapshot)}\n\n`;
  await where.route('**/scheduler/v1/live', route => route.fulfill({ contentType: 'text/event-stream', body }));
  await where.route('**/scheduler/v1/jobs?*', route => route.fulfill({ json: { jobs: [], total: 0 } }));
  const cases = [
    ['/ui/', ['Nothing is broken', 'The first submit makes one']],
    ['/ui/hosts', ['No host has asked for work yet']],
    ['/ui/jobs', ['No job matches']],
    ['/ui/health', ['takes writes']],
  ];
  for (const [path, words] of cases) {
    const { page, faults } = await open(where, path);
    await settled(page);
    for (const word of words) await page.waitForFunction(wanted => document.querySelector('main').textContent.includes(wanted), word);
    assert.deepEqual(faults, []);
    await page.close();
  }
  await where.close();
});
