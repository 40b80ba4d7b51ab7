// Fills an open lab for `measure.mjs`: `node fill.mjs HOSTS JOBS [RATE]`. Then RATE jobs a second begin and end, until
// SIGTERM.

import process from 'node:process';

const LAB = process.env.FAIRLEAD_URL ?? 'http://127.0.0.1:3000';
const SESSION = `fill-${process.pid}`;
/** Jobs of one submit. */
const SUBMIT = 1000;
/** Requests at one time. */
const AT_ONCE = 32;
const MEMORY_MB = 65536;
const TICK_MS = 100;

const [hosts, jobs, rate = 0] = process.argv.slice(2).map(Number);

async function post(path, body) {
  const response = await fetch(`${LAB}/scheduler/v1/${path}`, { method: 'POST', body: body && JSON.stringify(body), headers: body && { 'content-type': 'application/json' } });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text;
}

/** Does it for each number below `many`, some at one time. */
async function each(many, work) {
  let next = 0;
  const worker = async () => {
    while (next < many) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const requests = new Map();

function consume(number, more) {
  const name = `fill-${String(number).padStart(5, '0')}`;
  const request = (requests.get(name) ?? 0) + 1;
  requests.set(name, request);
  const ask = { session: `${SESSION}-${number}`, request, kinds: ['dc'], arch: 'x86_64', group: `rack-${number % 40}`, memory_mb: MEMORY_MB, free_memory_mb: MEMORY_MB, wait_s: 0, running: [] };
  return post(`testboxes/${name}/consume`, { ...ask, ...more });
}

const job = number => ({
  suite: `suite-${number % 25}`,
  testbox: 'dc',
  my_account: `person-${number % 60}`,
  need_memory: number % 3 ? '1g' : '900g',
  script: 'exit 0',
});

await each(hosts, number => consume(number, {}));
console.log(`${hosts} hosts`);
await each(Math.ceil(jobs / SUBMIT), batch => post('jobs/submit', Array.from({ length: Math.min(SUBMIT, jobs - batch * SUBMIT) }, (_, n) => job(batch * SUBMIT + n))));
console.log(`${jobs} jobs`);

let turn = 0;
async function one() {
  const number = turn++ % hosts;
  const { jobs: granted } = await consume(number, { jobs_max: 1 });
  for (const { job_id: id, job_token: token, attempt } of granted)
    await post(`jobs/${id}/update?job_token=${token}&attempt=${attempt}&job_stage=finish&job_health=success&exit_code=0&job_data_readiness=complete`);
}
if (rate) setInterval(() => Array.from({ length: Math.ceil((rate * TICK_MS) / 1000) }, () => one().catch(error => console.error(String(error)))), TICK_MS);
