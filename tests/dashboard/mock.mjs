// A lab of 10,000 hosts in memory that answers what the pages ask: for measures of size, and for work on pages without a
// scheduler. `node mock.mjs` prints its address. MOCK_PORT: its port (8088). MOCK_ROLE: who asks (admin).

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { makeLab, seeded, MINUTE, HOUR, ACCOUNTS } from './mock/data.mjs';
import { listJobs, viewJob, explainJob, answerJob, logText, OUTLOOK } from './mock/jobs.mjs';
import { makePreview, runPreview } from './mock/actions.mjs';

const ASSETS = new URL('../../src/dashboard/assets/', import.meta.url).pathname;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};
const RUN = `r0.${Date.now().toString(16)}`;
const role = process.env.MOCK_ROLE ?? 'admin';
const lab = makeLab({ now: Date.now() });
const previews = new Map();
const clients = new Set();
const random = seeded(99);
const names = Object.keys(lab.hosts);
let seq = 1;
let lab_paused;
const history = [];

function labRow() {
  const states = {};
  for (const host of Object.values(lab.hosts)) states[host.state] = (states[host.state] ?? 0) + 1;
  const stages = Object.fromEntries(
    ['submit', 'dispatch', 'boot', 'setup', 'wait_peer', 'running', 'post_run', 'manual_check'].map(stage => [stage, 0]),
  );
  const ended = {};
  let ready = 0;
  for (const job of lab.jobs) {
    if (job.end_ms) {
      if (job.end_ms > Date.now() - 24 * HOUR) ended[job.job_health] = (ended[job.job_health] ?? 0) + 1;
    } else stages[job.job_stage] += 1;
    if (job.job_stage === 'submit' && job.ready_ms && !job.held_by) ready += 1;
  }
  return {
    name: 'sched-1',
    version: '0.9.0',
    paused: lab_paused,
    waiting: ready,
    running: Object.values(stages).reduce((a, b) => a + b, 0) - stages.submit,
    stages,
    not_ready: stages.submit - ready,
    ended_24h: ended,
    store: { name: 'elasticsearch 8.15.0', well: true },
    hosts_by_state: states,
  };
}
const replicas = () =>
  Object.fromEntries(
    ['sched-1', 'sched-2', 'sched-3'].map((name, i) => [
      name,
      { name, url: `http://${name}:3000`, is_me: i === 0, version: '0.9.0', lag_s: i === 2 ? 95 : 0, behind: i === 2, inbox: i, held: 100 * i, store_requests: 3 - i },
    ]),
  );
const snapshot = () => ({
  run: RUN,
  seq,
  at_ms: Date.now(),
  tables: { lab: { lab: labRow() }, queues: lab.queues, hosts: lab.hosts, replicas: replicas() },
});

export function changed(tables, jobs = []) {
  seq += 1;
  const delta = { run: RUN, seq, at_ms: Date.now(), tables, jobs: jobs.slice(0, 200), jobs_more: Math.max(0, jobs.length - 200) };
  history.push(delta);
  if (history.length > 100) history.shift();
  for (const client of clients) send(client, 'delta', delta);
}
const send = (client, event, data) => client.write(`event: ${event}\nid: ${RUN}/${data.seq}\ndata: ${JSON.stringify(data)}\n\n`);

function step() {
  const hosts = {};
  const jobs = [];
  for (let i = 0; i < 40; i += 1) {
    const name = names[Math.floor(random() * names.length)];
    const host = lab.hosts[name];
    if (host.state !== 'busy' && host.state !== 'waiting') continue;
    const free = host.state === 'busy' && random() < 0.5;
    lab.hosts[name] = hosts[name] = {
      ...host,
      state: free ? 'waiting' : 'busy',
      free_memory_mb: free ? host.memory_mb : Math.round(host.memory_mb * random()),
      free_cpus: free ? host.cpus : Math.round(host.cpus * random()),
    };
    const job = lab.jobs[lab.jobs.length - 1 - Math.floor(random() * 200)];
    jobs.push(job.job_id);
  }
  const queues = {};
  for (const queue of Object.values(lab.queues))
    if (random() < 0.4)
      queues[queue.name] = lab.queues[queue.name] = { ...queue, waiting: Math.max(0, queue.waiting + Math.floor(random() * 7) - 3) };
  changed({ hosts, queues, lab: { lab: labRow() }, replicas: replicas() }, jobs);
}
if (!process.env.MOCK_STILL) setInterval(step, 1000);
setInterval(() => {
  for (const client of clients) client.write(':\n\n');
}, 1000);

function live(request, response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const [run, last] = (request.headers['last-event-id'] ?? '').split('/');
  const missed = history.filter(delta => delta.seq > Number(last));
  if (run === RUN && (Number(last) === seq || missed[0]?.seq === Number(last) + 1)) for (const delta of missed) send(response, 'delta', delta);
  else send(response, 'snapshot', snapshot());
  clients.add(response);
  response.on('close', () => clients.delete(response));
}

function series(query) {
  const until = Number(query.get('until_ms')) || Date.now();
  const since = Number(query.get('since_ms')) || until - 6 * HOUR;
  const step_ms = Math.max(MINUTE, Math.ceil((until - since) / 1500 / MINUTE) * MINUTE);
  const part = query.get('name') ? 0.12 : 1;
  const points = [];
  for (let at = since - (since % step_ms); at < until; at += step_ms) {
    const wave = 1 + 0.4 * Math.sin(at / (2 * HOUR)) + 0.15 * Math.sin(at / (7 * MINUTE)) + (((at / MINUTE) * 7919) % 13) / 60;
    const dispatched = Math.round((200 * part * wave * step_ms) / MINUTE);
    points.push({
      at_ms: at,
      dispatched,
      ended: Math.round(dispatched * 0.97),
      failed: Math.round(dispatched * 0.08 * wave),
      busy_ms: dispatched * 700_000,
      wait_p50_s: Math.round(30 * wave),
      wait_p95_s: Math.round(240 * wave ** 2),
    });
  }
  return { since_ms: since, until_ms: until, step_ms, points };
}

function usage(query) {
  const by = query.get('by') ?? 'account';
  const list = {
    account: ACCOUNTS,
    queue: Object.keys(lab.queues),
    suite: [...new Set(lab.jobs.slice(0, 400).map(job => job.suite))],
    host: names.slice(0, 60),
  }[by];
  const shares = list.map((_, i) => 1 / (i + 1.5));
  const total = shares.reduce((a, b) => a + b, 0);
  return {
    by,
    since_ms: Number(query.get('since_ms')) || Date.now() - 168 * HOUR,
    until_ms: Date.now(),
    rows: list.map((name, i) => ({
      name,
      dispatched: Math.round(shares[i] * 40_000),
      ended: Math.round(shares[i] * 39_000),
      failed: Math.round(shares[i] * 3000),
      busy_ms: Math.round(shares[i] * 9e10),
      share_permille: Math.round((shares[i] * 1000) / total),
      wait_p50_s: 64,
      wait_p95_s: 512,
    })),
  };
}

function audit(query) {
  let events = lab.audit.filter(event => ['who', 'what', 'subject'].every(key => !query.get(key) || event[key].includes(query.get(key))));
  if (query.get('incidents')) events = events.filter(event => !/^(job|host\.reserve)/.test(event.what));
  const from = Number(query.get('after') ?? 0);
  const limit = Number(query.get('limit') ?? 100);
  events = events.slice(from, from + limit + 1);
  return { events: events.slice(0, limit), next: events.length > limit ? String(from + limit) : undefined };
}

function viewHost(name) {
  const host = lab.hosts[name];
  if (!host) throw { status: 404, code: 'no_such_host', message: `there is no host ${name}`, hint: 'GET /scheduler/v1/hosts lists all' };
  return {
    hostname: name,
    ...host,
    tags: ['rack:7', 'nvme'],
    devices: ['eth0', 'nvme0'],
    isolation: 'users',
    executors: [
      { name: 'container', ready: true },
      { name: 'vm', ready: false, why: 'no /dev/kvm' },
    ],
    load: {
      memory_total_mb: host.memory_mb,
      memory_available_mb: host.free_memory_mb,
      unpromised_memory_mb: host.free_memory_mb,
      cpu_pressure_percent: 12,
      memory_pressure_percent: 1,
      jobs: host.jobs.length,
      loaded: !!host.loaded,
    },
    facts: { cpu: ['cpu:kunpeng-920'], kernel: ['kernel:6.6.0'] },
    seen_ms: host.lost_ms ?? Date.now() - 900,
    why_idle:
      host.state === 'waiting'
        ? ['4,512 jobs wait; 4,100 of them need more memory than it has free', 'the others ask for groups that it is not of']
        : host.closed
          ? [`it is closed by ${host.closed.by}: ${host.closed.reason}`]
          : [],
  };
}

const body = async request => {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text ? JSON.parse(text) : {};
};
const refused = (status, code, message, hint = '') => ({ status, code, message, hint });

async function answer(method, path, query, request) {
  const part = path.replace('/scheduler/v1/', '').split('/').map(decodeURIComponent);
  if (path === '/scheduler/v1/login' && method === 'POST') {
    const { token, my_account } = await body(request);
    if (token === 'wrong') throw refused(401, 'unauthorized', 'the token is of no account', 'ask an admin for a new one');
    return { my_account: my_account ?? 'olga', role, vip: false };
  }
  if (path === '/scheduler/v1/logout') return {};
  if (path.startsWith('/r/')) return answerJob(lab, part[2]);
  if (path.startsWith('/result/')) return ['dmesg.gz', 'job.yaml', 'ltp.json', 'output', 'stats.json', 'time.log'];
  switch (part[0]) {
    case 'whoami':
      return { my_account: role === 'admin' ? 'olga' : 'ann', role, vip: false };
    case 'overview':
      return snapshot();
    case 'series':
      return series(query);
    case 'usage':
      return usage(query);
    case 'audit':
      return audit(query);
    case 'health':
      return {
        well: true,
        replica: 'sched-1',
        version: '0.9.0',
        time_ms: Date.now(),
        store: 'elasticsearch 8.15.0',
        peers: ['sched-2', 'sched-3'],
        stopping: false,
      };
    case 'accounts':
      return ACCOUNTS.map(name => ({
        my_account: name,
        role: 'user',
        vip: name === 'ann',
        limits: { waiting: { hard: 5000 }, running: { soft: 200, hard: 400 }, hours: { hard: 4000 } },
      }));
    case 'queues':
      return Object.values(lab.queues);
    case 'pools':
      if (part[2]) return lab.decisions;
      return part[1] ? lab.pools.find(pool => pool.name === part[1]) : lab.pools;
    case 'timers':
      return timers(method, part, query);
    case 'hosts':
      return viewHost(part[1]);
    case 'tests':
      return ['fcntl14', 'fcntl17', 'open02', 'mmap01'].map((test, i) => ({
        test: `ltp.${test}`,
        group: 'vm-2p8g',
        passed: 40 - i * 9,
        failed: i * 5,
        seconds: 1.2 * i,
        last_ms: Date.now() - i * HOUR,
      }));
    case 'previews':
      return preview(method, part, request);
    case 'jobs': {
      if (!part[1]) return listJobs(lab, query);
      if (part[1] === 'submit') return [{ job_id: '', message: '', outlook: OUTLOOK }];
      const job = lab.byId.get(part[1]) ?? lab.parts.find(shard => shard.job_id === part[1]);
      if (!job) throw refused(404, 'no_such_job', `there is no job ${part[1]}`, 'check the id');
      if (part[2] === 'explain') return explainJob(lab, job);
      if (part[2] === 'reuse') return { job_id: job.job_id, verdict: 'never', summary: 'It always runs: nothing says that it may reuse.', within_s: 0 };
      return viewJob(lab, job);
    }
    default:
      throw refused(404, 'no_such_route', path);
  }
}

function timers(method, part, query) {
  if (!part[1])
    return { timers: lab.timers.filter(timer => !query.get('account') || timer.my_account === query.get('account')), total: lab.timers.length };
  const timer = lab.timers.find(one => one.timer === part[1]);
  if (part[2]) timer.paused = part[2] === 'pause';
  return timer;
}

async function preview(method, part, request) {
  if (method === 'POST' && !part[1]) {
    const made = makePreview(lab, await body(request));
    previews.set(made.preview_id, made);
    return made;
  }
  const made = previews.get(part[1]);
  if (!made) throw refused(404, 'no_such_preview', `there is no preview ${part[1]}`, 'make it again');
  if (part[2] === 'run')
    runPreview(lab, made, changed, paused => {
      lab_paused = paused;
      changed({ lab: { lab: labRow() } });
    });
  return made;
}

async function file(path, response) {
  const wanted = normalize(path.slice(4)).replace(/^\/+/, '');
  const type = TYPES[extname(wanted)];
  const bytes = await readFile(join(ASSETS, type ? wanted : 'index.html')).catch(() => readFile(join(ASSETS, 'index.html')));
  response.writeHead(200, { 'content-type': type ?? TYPES['.html'], 'content-security-policy': POLICY, 'cache-control': 'no-cache' });
  response.end(bytes);
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://lab');
  const path = url.pathname;
  try {
    if (path === '/scheduler/v1/live') return live(request, response);
    if (/\/jobs\/[^/]+\/log$/.test(path)) return void logText(lab, path.split('/')[4], url.searchParams, response);
    if (request.method === 'GET' && path.startsWith('/ui/')) return await file(path, response);
    const data = await answer(request.method, path, url.searchParams, request);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(data));
  } catch (error) {
    const { status = 500, code = 'broken', message = String(error), hint = '' } = error;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code, message, hint } }));
  }
});
server.listen(Number(process.env.MOCK_PORT ?? 8088), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
