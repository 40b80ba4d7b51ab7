// The pages answer what people ask: the same facts as the scheduler's answers.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { context, endBrowser, get, open, settled } from './lab.mjs';

after(endBrowser);

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
