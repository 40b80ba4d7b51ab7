// The stream: one for all tabs, passed on when its tab goes, and back by itself after the lab was away.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { context, endBrowser, get, open, settled, way } from './lab.mjs';

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
    const others = pages.filter(page => page !== leader);
    const taken = where.waitForEvent('request', { predicate: request => request.url().endsWith('/live'), timeout: LONG_MS });
    await leader.close();
    await taken;
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

test('a tab that missed an event asks the leader for the whole', async () => {
  const road = await way();
  const where = await context({ baseURL: road.secure });
  const { pages, asked } = await tabs(where, 2);
  const leader = asked[0].frame().page();
  const kinds = await leader.evaluate(async () => {
    const channel = new BroadcastChannel('fairlead-live');
    const heard = [];
    const answered = new Promise(resolve => {
      channel.onmessage = ({ data }) => {
        if (['want', 'snapshot'].includes(data.kind)) heard.push(data.kind);
        if (heard.length === 2) resolve(heard);
      };
    });
    channel.postMessage({
      kind: 'delta',
      before: Number.MAX_SAFE_INTEGER - 1,
      delta: { run: 'another run', seq: Number.MAX_SAFE_INTEGER, tables: {} },
    });
    return answered;
  });
  assert.deepEqual(kinds, ['want', 'snapshot']);
  for (const page of pages) await isLive(page);
  await where.close();
  road.close();
});

test('the output of a job holds a connection only while its tab is seen', async () => {
  const where = await context();
  const [job] = (await get('jobs?limit=1&stage=finish')).jobs;
  const isLog = request => /\/jobs\/[^/]+\/log\?/.test(request.url());
  await where.route(
    url => url.pathname.endsWith('/log'),
    () => {},
  );
  const first = where.waitForEvent('request', isLog);
  const { page } = await open(where, `/ui/jobs/${encodeURIComponent(job.job_id)}`);
  await first;
  const show = hidden =>
    page.evaluate(value => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  const ended = where.waitForEvent('requestfailed', isLog);
  await show(true);
  await ended;
  const again = where.waitForEvent('request', isLog);
  await show(false);
  await again;
  await where.close();
});
