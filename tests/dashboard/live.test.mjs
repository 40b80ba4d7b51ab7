// The stream: one for all tabs, passed on when its tab goes, and back by itself after the lab was away.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { context, endBrowser, open, settled, way } from './lab.mjs';

after(endBrowser);

const LONG_MS = 30_000;
const says = (page, words, timeout) =>
  page.waitForFunction(wanted => document.querySelector('#live-note')?.textContent.includes(wanted), words, { timeout });
const isLive = page => says(page, '●live', LONG_MS);

/** Tabs of a context, each live, and the requests for the stream that they made. */
async function tabs(where, number) {
  const asked = [];
  where.on('request', request => {
    if (request.url().endsWith('/live')) asked.push(request);
  });
  const pages = await Promise.all(Array.from({ length: number }, async () => (await open(where, '/ui/')).page));
  for (const page of pages) {
    await isLive(page);
    await settled(page);
  }
  return { pages, asked };
}

for (const kind of ['secure', 'plain']) {
  test(`ten tabs share one stream, and another one takes it over (${kind})`, async () => {
    const road = await way();
    const where = await context({ baseURL: road[kind] });
    const { pages, asked } = await tabs(where, 10);
    assert.equal(await pages[0].evaluate(() => isSecureContext && !!navigator.locks), kind === 'secure');
    assert.equal(asked.length, 1);
    const leader = asked[0].frame().page();
    await leader.close();
    const others = pages.filter(page => page !== leader);
    for (let deadline = Date.now() + LONG_MS; asked.length < 2; await others[0].waitForTimeout(50))
      assert.ok(Date.now() < deadline, 'nobody takes the stream over');
    for (const page of others) await isLive(page);
    assert.equal(asked.length, 2);
    assert.match(asked[1].headers()['last-event-id'], /^.+\/\d+$/);
    await where.close();
    road.close();
  });
}

test('the page says since when it is not live, and is live again by itself', async () => {
  const road = await way();
  const where = await context({ baseURL: road.secure });
  const {
    pages: [page],
  } = await tabs(where, 1);
  road.cut();
  await says(page, 'no news since', LONG_MS);
  road.mend();
  await isLive(page);
  await where.close();
  road.close();
});
