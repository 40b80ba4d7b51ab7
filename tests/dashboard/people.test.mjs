// Who looks: the login leads back to the page, and who is no admin is not offered an admin's actions.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allPages, context, endBrowser, get, login, open, settled } from './lab.mjs';

after(endBrowser);

test('the login leads back to the page that asked for it', async () => {
  const where = await context({ loggedIn: false });
  const { page, faults } = await open(where, `/ui/login?next=${encodeURIComponent('/ui/hosts?view=list')}`);
  const [field, text] = login();
  await page.fill(`[name=${field}]`, text);
  await page.keyboard.press('Enter');
  await page.waitForURL(url => url.pathname === '/ui/hosts' && url.search === '?view=list');
  await settled(page);
  assert.equal(await page.textContent('h1'), 'Hosts');
  assert.deepEqual(faults, []);
  await where.close();
});

test('the login leads nowhere else', async () => {
  const where = await context({ loggedIn: false });
  const { page } = await open(where, `/ui/login?next=${encodeURIComponent('//elsewhere.example/ui/')}`);
  const [field, text] = login();
  await page.fill(`[name=${field}]`, text);
  await page.keyboard.press('Enter');
  await page.waitForURL(url => url.pathname === '/ui/' && !url.search);
  await where.close();
});

test('only admins are offered the actions of admins', async () => {
  const where = await context();
  await where.route('**/scheduler/v1/whoami', route => route.fulfill({ json: { my_account: 'ann', role: 'user', vip: false } }));
  const [host] = Object.keys((await get('overview')).tables.hosts);
  const of = 'pause_lab resume_lab pause_queue resume_queue weights cordon drain uncordon reserve unreserve'.split(' ');
  const paths = [
    ...(await allPages()).filter(one => ['overview', 'queues', 'queue', 'list of hosts'].includes(one.name)).map(one => one.path),
    `/ui/hosts/${encodeURIComponent(host)}`,
  ];
  for (const path of paths) {
    const { page } = await open(where, path);
    await settled(page);
    assert.deepEqual(
      await page.$$eval('[data-action]', (found, admin) => found.map(one => one.dataset.action).filter(one => admin.includes(one)), of),
      [],
      path,
    );
    await page.close();
  }
  await where.close();
});
