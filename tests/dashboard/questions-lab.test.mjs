// The pages answer what people ask about hosts, shares and runs: the same facts as the scheduler's answers.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { context, endBrowser, get, open, settled } from './lab.mjs';

after(endBrowser);

/** Waits until the page says this. */
const says = (page, words) => page.waitForFunction(wanted => document.querySelector('main').textContent.replace(/\s+/g, ' ').includes(wanted), words);
/** Opens a page of the lab, does something with it, and looks whether anything was wrong. */
async function on(path, look) {
  const where = await context();
  const { page, faults } = await open(where, path);
  await settled(page);
  await look(page);
  assert.deepEqual(faults, []);
  await where.close();
}
const of = encodeURIComponent;
/** Compares a page with an answer, anew as long as the answer changes meanwhile. */
async function compare(ask, path, look) {
  for (;;) {
    const answer = await ask();
    let problem;
    await on(path, page => look(page, answer)).catch(error => {
      problem = error;
    });
    if (!problem) return;
    if (isDeepStrictEqual(await ask(), answer)) throw problem;
  }
}
const percent = permille => `${(permille / 10).toFixed(permille < 100 && permille % 10 ? 1 : 0)} %`;

test('whether a job can ever run: what each host lacks', async t => {
  const [job] = (await get('jobs?stage=submit&limit=1')).jobs;
  if (!job) return t.diagnostic('no job waits in this lab');
  const seen = async () => (await get(`jobs/${job.job_id}/explain`)).hosts;
  return compare(seen, `/ui/jobs/${of(job.job_id)}`, async (page, hosts) => {
    assert.ok(hosts.length > 0);
    for (const host of hosts) {
      const row = page.locator(`tr[data-row]:has-text("${host.hostname}"):has-text("${host.could ? '✓' : '✗'}")`);
      await row.waitFor();
      assert.ok((await row.textContent()).replace(/\s+/g, ' ').includes(host.lacks.join('; ') || 'nothing'));
    }
  });
});

test('why a job failed, and whether its host is at fault', async t => {
  const [job] = (await get('jobs?health=fail&limit=1')).jobs;
  if (!job) return t.diagnostic('no job of this lab failed');
  const { summary, compared } = await get(`jobs/${job.job_id}/explain`);
  return on(`/ui/jobs/${of(job.job_id)}`, async page => {
    await says(page, summary);
    await says(page, compared.words);
  });
});

test('which jobs have a parameter', async t => {
  const word = 'nr_threads=2';
  const found = await get(`jobs?kv=${of(word)}&limit=50`);
  if (!found.total) return t.diagnostic('no job of this lab has the parameter');
  return on(`/ui/jobs?kv=${of(word)}`, async page => {
    await page.locator('tr[data-row]').first().waitFor();
    const shown = await page.$$eval('tr[data-row] a.id[href^="/ui/jobs/"]', cells => cells.map(cell => cell.textContent));
    assert.deepEqual(
      shown,
      found.jobs.map(job => job.job_id),
    );
  });
});

test('whether a queue gets its share', async () => {
  const wanted = async () => (await get('queues')).map(({ name, share_permille }) => ({ name, share_permille }));
  await compare(wanted, '/ui/queues', async (page, queues) => {
    for (const queue of queues) {
      const row = page.locator(`tr[data-row]:has(a:text-is("${queue.name}"))`);
      const words = (await row.textContent()).replace(/\s+/g, ' ');
      assert.ok(words.includes(percent(queue.share_permille)), `${queue.name}: ${words}`);
    }
  });
});

test('who uses the lab this week', async () => {
  const used = async () => (await get(`usage?by=account&since_ms=${Date.now() - 7 * 86_400_000}`)).rows;
  await compare(used, '/ui/use', async (page, rows) => {
    for (const row of rows) {
      const shown = page.locator(`tr[data-row]:has(a:text-is("${row.name}"))`);
      assert.ok((await shown.textContent()).replace(/\s+/g, ' ').includes(percent(row.share_permille)), row.name);
    }
  });
});

test('why a host is idle', async t => {
  const idle = (await get('hosts')).find(host => host.state === 'waiting');
  if (!idle) return t.diagnostic('no host of this lab waits for work');
  const why = async () => (await get(`hosts/${of(idle.hostname)}`)).why_idle;
  return compare(why, `/ui/hosts/${of(idle.hostname)}`, async (page, reasons) => {
    assert.ok(reasons.length > 0);
    for (const reason of reasons) await says(page, reason);
  });
});

test('which hosts are in which state', async () => {
  const hosts = await get('hosts');
  for (const state of new Set(hosts.map(host => host.state))) {
    const those = hosts.filter(host => host.state === state);
    await on(`/ui/hosts?view=list&state=${state}`, async page => {
      await says(page, `${those.length.toLocaleString('en')} host${those.length === 1 ? '' : 's'} of ${hosts.length.toLocaleString('en')}`);
      await page.locator(`tr[data-row]:has-text("${those[0].hostname}"):has-text("${state}")`).first().waitFor();
    });
  }
});

test('when a drained host is empty', async t => {
  const draining = (await get('hosts')).find(host => host.state === 'draining');
  if (!draining) return t.diagnostic('no host of this lab drains');
  const leaving = async () => (await get(`hosts/${of(draining.hostname)}`)).empties;
  return compare(leaving, `/ui/hosts/${of(draining.hostname)}`, async (page, empties) => {
    await says(page, empties.words);
    for (const job of empties.jobs) await page.locator(`tr[data-row]:has-text("${job.job_id}")`).first().waitFor();
  });
});
