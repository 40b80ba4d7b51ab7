// Jobs of mock.mjs: lists, views, explanations, answers and logs.

const words = text => text.split(',').filter(Boolean);
const FIELDS = {
  stage: 'job_stage',
  health: 'job_health',
  account: 'my_account',
  queue: 'queue',
  host: 'host',
  suite: 'suite',
  submit_id: 'submit_id',
  group_id: 'group_id',
  tbox_group: 'tbox_group',
};

export function matches(query) {
  const tests = [];
  for (const [name, field] of Object.entries(FIELDS)) {
    const text = query.getAll(name).join(',');
    if (!text) continue;
    const wanted = words(text);
    const not = wanted[0].startsWith('!');
    const set = new Set(wanted.map(word => word.replace('!', '')));
    tests.push(job => set.has(job[field]) !== not);
  }
  for (const kv of query.getAll('kv')) tests.push(job => job.kv?.includes(kv));
  const signature = query.get('signature');
  if (signature) tests.push(job => job.crash_signature?.startsWith(signature.replace('*', '')));
  if (query.get('since_ms')) tests.push(job => job.submit_ms >= Number(query.get('since_ms')));
  if (query.get('until_ms')) tests.push(job => job.submit_ms < Number(query.get('until_ms')));
  return job => tests.every(test => test(job));
}

export function listJobs(lab, query) {
  if (query.get('parts') === 'only_shards' && !query.get('shards_of'))
    return { jobs: [{ ...lab.byId.get('sharded.000200'), job_id: lab.parts[0].job_id, shard_of: 'sharded.000200' }], total: 200 };
  const test = matches(query);
  const found = lab.jobs.filter(test);
  if (query.get('group_by')) return { jobs: [], groups: groupJobs(found, query.get('group_by')), total: found.length };
  if (query.get('order') !== 'oldest') found.reverse();
  const from = Number(query.get('after') ?? 0);
  const limit = Number(query.get('limit') ?? 100);
  const page = found.slice(from, from + limit).map(job => (query.get('with_kv') === 'true' ? job : { ...job, kv: undefined }));
  return { jobs: page, total: found.length, next: from + limit < found.length && limit ? String(from + limit) : undefined };
}

export function viewJob(lab, job) {
  const at = ms => ms && new Date(ms).toISOString().slice(0, 19) + '+0000';
  const view = {
    ...job,
    id: job.job_id,
    tbox_type: 'vm',
    timeout_seconds: 3600,
    submit_time: at(job.submit_ms),
    dispatch_time: at(job.dispatch_ms),
    boot_time: at(job.dispatch_ms && job.dispatch_ms + 2000),
    setup_time: at(job.running_ms && job.running_ms - 9000),
    running_time: at(job.running_ms),
    post_run_time: at(job.end_ms && job.running_ms && job.end_ms - 4000),
    finish_time: job.job_stage === 'finish' ? at(job.end_ms) : undefined,
    deadline_ms: job.running_ms && !job.end_ms ? job.running_ms + 3_600_000 : undefined,
    script: 'make -j$nr_task && ./run',
    category: 'benchmark',
  };
  if (job.end_ms && job.running_ms) {
    Object.assign(view, {
      peak_memory_mb: 812,
      cpu_ms: 481_200,
      run_seconds: Math.round((job.end_ms - job.running_ms) / 1000),
      cases: { passed: 118, failed: job.failure ? 3 : 0, skipped: 4, first_failures: job.failure ? ['fcntl14', 'mmap01', 'open02'] : undefined },
    });
    if (job.failure)
      view.attempts = [
        {
          attempt: 1,
          host: 'vm-2p8g--0007',
          job_stage: 'finish',
          job_health: 'nfs_hang',
          failure: 'infra',
          dispatch_ms: job.dispatch_ms - 900_000,
          end_ms: job.dispatch_ms - 300_000,
          reason: 'NFS did not answer',
        },
      ];
    if (job.failure) view.attempt = 2;
  }
  if (job.shards) view.shards_total = job.shards.count;
  return view;
}

const BEFORE = {
  higher_queues: 2,
  higher_jobs: 1204,
  queues: 1,
  queues_jobs: 310,
  accounts: 0,
  accounts_jobs: 0,
  own_jobs: 212,
  exact: true,
  words:
    'before it over all queues: 1204 jobs in 2 queues of higher priority, 310 jobs in 1 queue of the same priority and 212 jobs of its own account; queues and accounts take turns',
};
const COSTS = [
  {
    constraint: 'need_memory: 8192 MB',
    more_able: 37,
    more_ready: 4,
    words: '37 more hosts without `need_memory: 8192 MB`, 4 now; the largest of them has 6100 MB',
  },
  { constraint: 'tags: [nvme]', more_able: 2, more_ready: 0, words: '2 more hosts without `tags: [nvme]`, none of them now' },
];

/** What a dry run says of a job. */
export const OUTLOOK = {
  queue: 'ann',
  class: 3,
  summary: 'it waits for a free host: 37 hosts can run it, but none asks for work with enough room now',
  hosts_known: 10_000,
  hosts_able: 37,
  hosts_ready: 0,
  before: BEFORE,
  costs: COSTS,
  queue_waits: { jobs: 812, p50_s: 64, p95_s: 512 },
  class_waits: { jobs: 4120, p50_s: 128, p95_s: 1024 },
};

/** Jobs that match, by the values of a field. */
function groupJobs(jobs, field) {
  const groups = new Map();
  for (const job of jobs) {
    const value = job[{ stage: 'job_stage', health: 'job_health', account: 'my_account' }[field] ?? field] ?? '';
    const group = groups.get(value) ?? { value, jobs: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, stopped: 0, since_ms: job.submit_ms, suite: job.suite };
    groups.set(value, group);
    group.jobs += 1;
    group.since_ms = Math.min(group.since_ms, job.submit_ms);
    if (group.suite !== job.suite) group.suite = undefined;
    const ended = { success: 'succeeded', cancel: 'stopped', terminate: 'stopped' }[job.job_health] ?? 'failed';
    group[!job.end_ms ? (job.job_stage === 'submit' ? 'waiting' : 'running') : ended] += 1;
  }
  const by = field === 'submit_id' ? 'since_ms' : 'jobs';
  return [...groups.values()].sort((a, b) => b[by] - a[by]).slice(0, 1000);
}

export function explainJob(lab, job) {
  const waits = job.job_stage === 'submit';
  return {
    job_id: job.job_id,
    job_stage: job.job_stage,
    summary: waits
      ? 'It waits for a host: 37 hosts could run it, and all are busy with jobs of queues that come first.'
      : job.end_ms
        ? `It ended: ${job.reason || job.job_health}.`
        : job.shards
          ? `Of its ${job.shards.count} shards ${job.shards.count - job.shards.over - job.shards.running} wait, ${job.shards.running} run and ${job.shards.over} have ended.`
          : `${job.host} has it.`,
    reasons: waits
      ? [
          'Its queue has 12.4 % of the lab, and wants 14.1 %.',
          BEFORE.words,
          'It asks for 8,192 MB; the freest host that could run it has 6,100 MB.',
        ]
      : [],
    hosts: waits
      ? Array.from({ length: 12 }, (_, i) => ({
          hostname: `vm-2p8g--00${10 + i}`,
          could: i < 5,
          lacks: i < 5 ? ['has only 6,100 MB free'] : ['is not of group dc-32g', 'has 65,536 MB, the job needs 98,304'],
        }))
      : [],
    hosts_more: waits ? 9988 : 0,
    ...(waits ? { before: BEFORE, costs: COSTS } : {}),
  };
}

export function answerJob(lab, id) {
  const job = lab.byId.get(id);
  if (!job) throw { status: 404, code: 'no_such_job', message: `there is no job ${id}`, hint: '' };
  return {
    job_id: id,
    over: !!job.end_ms,
    job_stage: job.job_stage,
    job_health: job.job_health,
    suite: job.suite,
    my_account: job.my_account,
    submit_ms: job.submit_ms,
    shards: job.shards,
    parts: job.shards ? lab.parts : undefined,
  };
}

export function logText(lab, id, query, response) {
  const job = lab.byId.get(id);
  const offset = Number(query.get('offset') ?? 0);
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  const line = n =>
    `[${String(n).padStart(6)}.${String((n * 7919) % 1000000).padStart(6, '0')}] ltp: case ${n % 97} of syscalls: ${n % 31 ? 'TPASS' : 'TFAIL: fcntl14.c:1208: lock was granted'}\n`;
  let text = 'Kernel command line: root=/dev/ram0 console=ttyAMA0\n';
  for (let n = 0; n < 300; n += 1) text += line(n);
  response.write(text.slice(offset));
  if (query.get('follow') !== 'true' || job?.end_ms) return response.end();
  let n = 300;
  const timer = setInterval(() => response.write(line(n++)), 700);
  response.on('close', () => clearInterval(timer));
}
