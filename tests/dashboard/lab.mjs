// The lab that the tests look at, and a browser that notices what goes wrong.

import assert from 'node:assert/strict';
import net from 'node:net';
import { chromium } from 'playwright-core';

/** Where the lab is. */
export const address = process.env.FAIRLEAD_URL?.replace(/\/$/, '');
assert.ok(address, 'FAIRLEAD_URL must be the address of a lab');
/** The token of an admin; an open lab needs none. */
const token = process.env.FAIRLEAD_TOKEN;
export const DEADLINE_MS = 15_000;
/** A name that stands for this machine, and that no browser takes for a secure place. */
const PLAIN_HOST = 'fairlead.test';

/** The header with the token, if there is one. */
export const rights = token ? { authorization: `Bearer ${token}` } : {};

/** An answer of the lab. */
export async function get(path, options) {
  const response = await fetch(`${address}${path.startsWith('/') ? path : `/scheduler/v1/${path}`}`, { ...options, headers: { accept: 'application/json', ...rights, ...options?.headers } });
  assert.equal(response.status, 200, `${path}: ${response.status}`);
  return response.json();
}

/** The answer to a body. */
export const post = (path, body) =>
  get(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });

let browser;
/** The browser of a file, started once. */
async function theBrowser() {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', `--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`],
  });
  return browser;
}
/** Ends the browser: the last thing that each file does. */
export const endBrowser = () => browser?.close();

/** The field of the login that somebody fills, and with what. */
export const login = () => (token ? ['token', token] : ['my_account', 'ann']);

/** A context whose tabs are logged in, unless told otherwise. */
export async function context({ loggedIn = true, ...options } = {}) {
  const made = await (await theBrowser()).newContext({ viewport: { width: 1280, height: 800 }, baseURL: address, ...options });
  made.setDefaultTimeout(DEADLINE_MS);
  if (token && loggedIn) {
    const reply = await made.request.post('/scheduler/v1/login', { data: { token }, headers: { origin: options.baseURL ?? address } });
    assert.equal(reply.status(), 200, 'the token is of no account');
  }
  return made;
}

/** A tab at a path, and what its console said that is wrong. */
export async function open(where, path) {
  const page = await where.newPage();
  const faults = [];
  page.on('console', message => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('pageerror', error => faults.push(String(error)));
  await page.goto(path);
  await page.waitForSelector('h1');
  return { page, faults };
}

/** Waits until the page is live and shows what it loads. */
export async function settled(page) {
  await page.waitForSelector('h1');
  await page.waitForFunction(() => !document.querySelector('main .skeleton'));
}

/** One job in a stage or with a health; none if there is none. */
const jobIn = async query => (await get(`jobs?limit=1&${query}`)).jobs[0];
let found;

/** The pages of this lab: name, path, heading, and words that must be on it. */
export async function allPages() {
  if (found) return found;
  const { tables } = await get('overview');
  const queue = Object.keys(tables.queues)[0];
  const [host, row] = Object.entries(tables.hosts)[0] ?? [];
  const jobs = {
    waiting: await jobIn('stage=submit'),
    running: await jobIn('stage=running'),
    ended: await jobIn('stage=finish'),
    sharded: await jobIn('parts=only_shards').then(shard => shard && { ...shard, job_id: shard.shard_of }),
  };
  const some = jobs.ended ?? jobs.running ?? jobs.waiting;
  assert.ok(queue && host && some, 'the lab must have a queue, a host and a job');
  const timers = (await get('timers?limit=1')).timers;
  const pools = await get('pools?limit=1');
  const of = encodeURIComponent;
  found = [
    ['overview', '/ui/', 'Overview', ['Wait for a host', 'Needs a look', 'Dispatches', 'Waits', queue]],
    ['queues', '/ui/queues', 'Queues', ['Wanted', 'Got in 1 h', queue]],
    ['queue', `/ui/queues/${of(queue)}`, queue, ['Got in 24 h', 'Jobs that wait longest', 'Limits']],
    ['use', '/ui/use', 'Use of the lab', ['Accounts', 'a week']],
    ['account', `/ui/accounts/${of(some.my_account)}`, some.my_account, ['Limits', 'Where its jobs are', 'Its last jobs that failed', 'Hours in 24 h']],
    ['jobs', '/ui/jobs', 'Jobs', [some.suite, 'match']],
    ['jobs by a filter', `/ui/jobs?queue=${of(some.queue)}&order=oldest`, 'Jobs', ['match']],
    ...Object.entries(jobs)
      .filter(([, job]) => job)
      .map(([kind, job]) => [`${kind} job`, `/ui/jobs/${of(job.job_id)}`, job.job_id, ['Timeline', 'Facts', 'Results', job.my_account]]),
    ['hosts', '/ui/hosts', 'Hosts', [row.group, 'A cell is a host']],
    ['list of hosts', '/ui/hosts?view=list', 'Hosts', [row.group, 'Memory']],
    ['host', `/ui/hosts/${of(host)}`, host, [row.state, row.group, 'Its last jobs']],
    ['timers', '/ui/timers', 'Timers', [timers[0]?.timer ?? 'There is no timer']],
    ...(some.submit_id ? [['submit', `/ui/submits/${of(some.submit_id)}`, some.submit_id, ['Failed', 'Passed', 'Matrix']]] : []),
    ['pools', '/ui/pools', 'Pools', [pools[0]?.name ?? 'There is no pool']],
    ...pools.slice(0, 1).map(pool => ['pool', `/ui/pools/${of(pool.name)}`, pool.name, ['Decisions', 'Machines']]),
    ['before a submit', '/ui/submits', 'Before a submit', ['Job file', 'Outlook', 'Check a file']],
    ['audit', '/ui/audit', 'Audit', ['newest first']],
    ['incidents', '/ui/audit?incidents=true', 'Audit', ['of the last 12 hours']],
    ['lab health', '/ui/health', 'Lab health', ['Replicas', 'answers reads', 'takes writes', tables.lab.lab.name]],
    ['login', '/ui/login', 'Log in', ['Token of your account']],
    ['no page', '/ui/nowhere', 'There is no such page', ['Go to the overview']],
  ].map(([name, path, heading, words]) => ({ name, path, heading, words }));
  return found;
}

/** A way to the lab that can be cut: its address, the same by a name of no secure place, and cut() and mend(). */
export async function way() {
  const { hostname, port } = new URL(address);
  const open = new Set();
  let whole = true;
  const server = net.createServer(near => {
    if (!whole) return near.destroy();
    const far = net.connect(Number(port || 80), hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
    return undefined;
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const at = server.address().port;
  const cut = () => {
    whole = false;
    for (const one of open) one.destroy();
  };
  return {
    secure: `http://127.0.0.1:${at}`,
    plain: `http://${PLAIN_HOST}:${at}`,
    cut,
    mend: () => {
      whole = true;
    },
    close: () => {
      cut();
      server.close();
    },
  };
}
