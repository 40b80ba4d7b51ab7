// Everything is done by the keyboard alone: going to pages, moving in lists, and each action up to its preview.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { context, endBrowser, get, open, settled } from './lab.mjs';

after(endBrowser);

const TABS_MOST = 400;

/** Presses Tab until the element has the focus. */
async function tabTo(page, selector) {
  for (let i = 0; i < TABS_MOST; i += 1) {
    if (await page.evaluate(wanted => document.activeElement?.matches(wanted), selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${selector} is not reached by Tab`);
}

/** Opens the action of the button that is reached, fills what it asks for, and gives the sentence of the preview. */
async function previewOf(page, selector, fields = {}) {
  await tabTo(page, selector);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open] .sentence:not(.skeleton), dialog[open] form');
  if (await page.$('dialog[open] form')) {
    for (const [name, value] of Object.entries(fields)) {
      await tabTo(page, `[name="${name}"]`);
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.type(value);
    }
    await page.keyboard.press('Enter');
  }
  await page.waitForSelector('dialog[open] .sentence:not(.skeleton)');
  const sentence = await page.textContent('dialog[open] .sentence');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  return sentence;
}

test('keys go to pages, and the heading has the focus', async () => {
  const where = await context();
  const { page, faults } = await open(where, '/ui/');
  await settled(page);
  for (const [key, heading] of [
    ['j', 'Jobs'],
    ['h', 'Hosts'],
    ['q', 'Queues'],
    ['u', 'Use of the lab'],
    ['t', 'Timers'],
    ['p', 'Pools'],
    ['a', 'Audit'],
    ['l', 'Lab health'],
    ['o', 'Overview'],
  ]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForFunction(wanted => document.activeElement?.tagName === 'H1' && document.activeElement.textContent === wanted, heading);
  }
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open] kbd');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  assert.deepEqual(faults, []);
  await where.close();
});

test('the first Tab is a way past the head of the page', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/hosts');
  await settled(page);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.id === 'main');
  await where.close();
});

test('a filter is typed, rows are walked, selected and opened, and the address says it', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/jobs');
  await settled(page);
  const [job] = (await get('jobs?limit=1')).jobs;
  await page.keyboard.press('/');
  await page.keyboard.type(`queue:${job.queue}`);
  await page.keyboard.press('Enter');
  await page.waitForURL(url => url.searchParams.get('queue') === job.queue);
  await page.keyboard.press('Escape');
  await settled(page);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.waitForSelector('tr[aria-selected=true]');
  const id = await page.textContent('tr:focus .id');
  await page.keyboard.press('Enter');
  await page.waitForURL(url => url.pathname.endsWith(encodeURIComponent(id)));
  await page.waitForFunction(wanted => document.querySelector('h1')?.textContent === wanted, id);
  await page.goBack();
  await page.waitForURL(url => url.searchParams.get('queue') === job.queue);
  await where.close();
});

test('a map of hosts leads to names by arrows, and Enter opens', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/hosts');
  await settled(page);
  await tabTo(page, 'canvas');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  const words = await page.textContent('.map:has(canvas:focus) .under');
  const name = words.split(':')[0];
  assert.ok((await get('overview')).tables.hosts[name], words);
  await page.keyboard.press('Enter');
  await page.waitForFunction(wanted => document.querySelector('h1')?.textContent === wanted, name);
  await where.close();
});

test('each action on jobs opens its preview', async () => {
  const where = await context();
  const { page, faults } = await open(where, '/ui/jobs');
  await settled(page);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.waitForSelector('tr[aria-selected=true]');
  const fields = { change: { priority: '3' } };
  for (const action of ['cancel', 'terminate', 'rerun', 'change', 'hold', 'release']) {
    assert.ok((await previewOf(page, `[data-action=${action}]`, fields[action])).length > 5, action);
  }
  assert.deepEqual(faults, []);
  await where.close();
});

test('an action on all that match is a filter, which the scheduler counts', async () => {
  const where = await context();
  const { page } = await open(where, '/ui/jobs?stage=submit');
  await settled(page);
  await tabTo(page, '.check input');
  await page.keyboard.press('Space');
  const asked = page.waitForRequest(request => request.url().endsWith('/previews') && request.method() === 'POST');
  await previewOf(page, '[data-action=hold]');
  const body = (await asked).postDataJSON();
  assert.deepEqual(body, { action: 'hold', filter: { stage: 'submit' } });
  await where.close();
});

test('each action on hosts opens its preview, from the list and from the page of one', async () => {
  const where = await context();
  const { page, faults } = await open(where, '/ui/hosts?view=list');
  await settled(page);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.waitForSelector('tr[aria-selected=true]');
  const fields = { reserve: { accounts: 'ann', hours: '2' } };
  for (const action of ['cordon', 'drain', 'uncordon', 'reserve', 'unreserve']) {
    assert.ok((await previewOf(page, `[data-action=${action}]`, fields[action])).length > 5, action);
  }
  const [host] = Object.entries((await get('overview')).tables.hosts).find(([, row]) => !row.closed);
  await page.goto(`/ui/hosts/${encodeURIComponent(host)}`);
  await settled(page);
  assert.ok(await previewOf(page, '[data-action=cordon]'));
  assert.deepEqual(faults, []);
  await where.close();
});

test('each action on queues and on the lab opens its preview', async () => {
  const where = await context();
  const { page, faults } = await open(where, '/ui/queues');
  await settled(page);
  const { queues } = (await get('overview')).tables;
  const queue = Object.values(queues).find(one => !one.paused);
  assert.ok(await previewOf(page, '[data-action=weights]', { [`weight:${queue.name}`]: String(queue.weight + 10) }));
  await page.goto(`/ui/queues/${encodeURIComponent(queue.name)}`);
  await settled(page);
  assert.ok(await previewOf(page, '[data-action=pause_queue]'));
  await page.goto('/ui/');
  await settled(page);
  assert.ok(await previewOf(page, '[data-action=pause_lab]'));
  assert.deepEqual(faults, []);
  await where.close();
});

test('a host is cordoned and opened again, and the page shows it by itself', async () => {
  const where = await context();
  const [host] = Object.entries((await get('overview')).tables.hosts).find(([, row]) => !row.closed && row.state !== 'off' && row.state !== 'silent');
  const { page, faults } = await open(where, `/ui/hosts/${encodeURIComponent(host)}`);
  await settled(page);
  for (const [action, next] of [
    ['cordon', 'uncordon'],
    ['uncordon', 'cordon'],
  ]) {
    await tabTo(page, `[data-action=${action}]`);
    await page.keyboard.press('Enter');
    if (action === 'cordon') {
      await page.waitForSelector('dialog[open] [name=reason]');
      await tabTo(page, '[name=reason]');
      await page.keyboard.type('a test of the dashboard');
      await page.keyboard.press('Enter');
    }
    await page.waitForFunction(() => document.activeElement?.matches('dialog .sentence'));
    await tabTo(page, 'dialog .do:enabled');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('dialog[open] .progress')?.textContent.includes('Done'));
    await page.keyboard.press('Escape');
    await page.waitForSelector(`[data-action=${next}]`);
  }
  assert.deepEqual(faults, []);
  await where.close();
});
