// The pages answer what people ask: the same facts as the scheduler's answers.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { address, context, endBrowser, get, open, post, rights, settled } from './lab.mjs';

after(endBrowser);

/** The text of an answer. */
const text = async path => (await fetch(`${address}/scheduler/v1/${path}`, { headers: rights })).text();

/** Waits until the page says this. */
const says = (page, words) => page.waitForFunction(wanted => document.querySelector('main').textContent.replace(/\s+/g, ' ').includes(wanted), words);

test('a waiting job: what is before it, and what each constraint costs', async t => {
  const job = (await get('jobs?stage=submit&limit=1')).jobs[0];
  if (!job) return t.diagnostic('no job waits in this lab');
  const answer = await get(`jobs/${job.job_id}/explain`);
  const where = await context();
  const { page, faults } = await open(where, `/ui/jobs/${job.job_id}`);
  await settled(page);
  await says(page, answer.summary);
  for (const fact of [answer.before, ...(answer.costs ?? [])].filter(Boolean)) await says(page, fact.words);
  assert.deepEqual(faults, []);
  return where.close();
});

test('before a submit: a file is checked, and nothing is submitted', async () => {
  const before = (await get('jobs?limit=0')).total;
  const where = await context();
  const { page, faults } = await open(where, '/ui/submits');
  await page.fill('#job-file', 'suite: asked\ntestbox: dc\nmy_account: ann\ntags: [no-host-has-this]\nscript: echo hello\n');
  await page.click('button:has-text("Check")');
  await says(page, 'would be accepted');
  await says(page, 'known hosts could run it');
  await says(page, 'without `tags: [no-host-has-this]`');
  await says(page, 'in the last hour in queue');
  await page.fill('#job-file', 'testbox: dc\nmy_account: ann\n');
  await page.click('button:has-text("Check")');
  await page.waitForSelector('[role=alert]');
  assert.equal((await get('jobs?limit=0')).total, before);
  assert.deepEqual(
    faults.filter(fault => !fault.includes('400')),
    [],
  );
  await where.close();
});

test('an account: where its jobs are', async () => {
  const { my_account: name } = (await get('jobs?limit=1')).jobs[0];
  const { groups } = await get(`jobs?account=${encodeURIComponent(name)}&group_by=suite`);
  const where = await context();
  const { page, faults } = await open(where, `/ui/accounts/${encodeURIComponent(name)}`);
  await settled(page);
  await says(page, 'Where its jobs are');
  await says(page, groups[0].value);
  assert.deepEqual(faults, []);
  await where.close();
});

test('what happened last night', async () => {
  const { events } = await get('audit?incidents=true&limit=5');
  const where = await context();
  const { page, faults } = await open(where, '/ui/audit');
  await page.click('a:has-text("What happened last night")');
  await says(page, 'of the last 12 hours');
  for (const event of events) await says(page, event.what);
  assert.deepEqual(faults, []);
  await where.close();
});

test('how long jobs of each priority wait', async () => {
  const { rows } = await get('usage?by=class');
  const where = await context();
  const { page, faults } = await open(where, '/ui/use?by=class');
  await settled(page);
  await says(page, 'Wait, 95 %');
  for (const row of rows) await page.waitForSelector(`tr[data-row] >> text="${row.name}"`);
  assert.deepEqual(faults, []);
  await where.close();
});

test('replicas: whether one is behind, and its requests at the store', async () => {
  const { tables } = await get('overview');
  const where = await context();
  const { page, faults } = await open(where, '/ui/health');
  await says(page, 'At the store');
  for (const [name, replica] of Object.entries(tables.replicas)) {
    await says(page, name);
    await says(page, replica.version);
  }
  await says(page, 'keeps up');
  assert.deepEqual(faults, []);
  await where.close();
});

test('who changed this: each act leads to the thing that it changed', async () => {
  const { events } = await get('audit?what=host.*&limit=1');
  const [{ subject, what }] = events;
  const where = await context();
  const { page, faults } = await open(where, `/ui/audit?what=${what}&subject=${encodeURIComponent(subject)}`);
  await settled(page);
  await page.click(`tr[data-row] a:text-is("${subject}")`);
  await page.waitForURL(`**/ui/hosts/${encodeURIComponent(subject)}`);
  assert.deepEqual(faults, []);
  await where.close();
});

test('which output a job writes: the page has what the log has', async () => {
  const [job] = (await get('jobs?stage=finish&limit=1')).jobs;
  const log = await text(`jobs/${job.job_id}/log`);
  const where = await context();
  const { page, faults } = await open(where, `/ui/jobs/${encodeURIComponent(job.job_id)}`);
  await page.waitForFunction(wanted => document.querySelector('.log pre')?.textContent === wanted, log);
  assert.ok(log.length > 0);
  // An empty log is no part of a file.
  assert.deepEqual(
    faults.filter(fault => !fault.includes('416')),
    [],
  );
  await where.close();
});

test('of a long log, the page fetches the end', async () => {
  const [job] = (await get('jobs?stage=finish&limit=1')).jobs;
  const lines = Array.from({ length: 30_000 }, (_, n) => `line ${n} of a long log\n`).join('');
  const where = await context();
  const fetched = [];
  await where.route(
    url => url.pathname.endsWith('/log'),
    (route, request) => {
      const range = request.headers().range;
      fetched.push(range);
      const end = lines.slice(range ? Number(range.split('=')[1]) : lines.length);
      const headers = { 'content-type': 'text/plain', 'content-range': `bytes ${lines.length - end.length}-${lines.length - 1}/${lines.length}` };
      return route.fulfill(range ? { status: 206, headers, body: end } : { status: 200, body: '' });
    },
  );
  const { page, faults } = await open(where, `/ui/jobs/${encodeURIComponent(job.job_id)}`);
  await says(page, `${lines.length.toLocaleString('en')} bytes, the last`);
  const shown = await page.textContent('.log pre');
  assert.ok(shown.startsWith('line ') && lines.endsWith(shown), shown.slice(0, 60));
  assert.match(fetched[0], /^bytes=-\d+$/);
  assert.deepEqual(faults, []);
  await where.close();
});

test('to run again, cancel, move and pause: the page shows what the scheduler says that it would do', async () => {
  const where = await context();
  const [over] = (await get('jobs?stage=finish&limit=1')).jobs;
  const [waiting] = (await get('jobs?stage=submit&limit=1')).jobs;
  const jobPage = job => `/ui/jobs/${encodeURIComponent(job.job_id)}`;
  const acts = [['/ui/', { action: 'pause_lab' }], [jobPage(over), { action: 'rerun', jobs: [over.job_id] }]];
  if (waiting) {
    acts.push([jobPage(waiting), { action: 'cancel', jobs: [waiting.job_id] }]);
    acts.push([jobPage(waiting), { action: 'change', jobs: [waiting.job_id], set: { queue: 'idle' } }]);
  }
  for (const [path, act] of acts) {
    const { sentence } = await post('previews', act);
    const { page, faults } = await open(where, path);
    await settled(page);
    await page.click(`[data-action=${act.action}]`);
    await page.waitForSelector('dialog[open] .sentence:not(.skeleton), dialog[open] form');
    if (act.set) await page.fill('dialog[open] [name=queue]', act.set.queue);
    if (await page.$('dialog[open] form')) await page.press('dialog[open] input', 'Enter');
    await page.waitForFunction(wanted => document.querySelector('dialog[open] .sentence')?.textContent.trim() === wanted, sentence);
    assert.deepEqual(faults, [], act.action);
    await page.close();
  }
  await where.close();
});

test('whether the store is healthy', async () => {
  const health = await get('health');
  const where = await context();
  const { page, faults } = await open(where, '/ui/health');
  await settled(page);
  await says(page, health.store);
  for (const [side, word] of [
    ['reads', 'answers reads'],
    ['writes', 'takes writes'],
  ])
    await page.waitForSelector(`.state.${health[side] ? 'bad' : 'good'}:has-text("${word}")`);
  assert.deepEqual(faults, []);
  await where.close();
});

test('the submits of an account, the newest first', async () => {
  const { my_account: name } = (await get('jobs?limit=1')).jobs[0];
  const { groups } = await get(`jobs?account=${encodeURIComponent(name)}&parts=no_shards&group_by=submit_id`);
  const where = await context();
  const { page, faults } = await open(where, `/ui/accounts/${encodeURIComponent(name)}`);
  const rows = page.locator('section[aria-label="Its newest submits"] tr[data-row]');
  await rows.first().waitFor();
  const [newest] = groups;
  assert.match((await rows.first().textContent()).replace(/\s+/g, ' '), new RegExp(`^${newest.value} ?${newest.suite}`));
  assert.deepEqual(faults, []);
  await where.close();
});

test('whether a job has the result of another one', async t => {
  const [job] = (await get('jobs?suite=again&limit=1')).jobs;
  if (!job) return t.diagnostic('no job of this lab may reuse');
  const said = await get(`jobs/${job.job_id}/reuse`);
  const where = await context();
  const { page, faults } = await open(where, `/ui/jobs/${encodeURIComponent(job.job_id)}`);
  await says(page, said.summary);
  assert.notEqual(said.verdict, 'never');
  assert.deepEqual(faults, []);
  return where.close();
});
