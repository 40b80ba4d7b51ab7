// The lab of mock.mjs: 12 queues, 10,000 hosts in 8 groups, 100,000 jobs. The same seed gives the same lab.

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const random = seeded(7);
const pick = list => list[Math.floor(random() * list.length)];
const between = (low, high) => low + Math.floor(random() * (high - low + 1));

export const ACCOUNTS = ['ann', 'bela', 'chen', 'dora', 'emil', 'fatma', 'goro', 'hana', 'ci-kernel', 'ci-gcc'];
const QUEUES = ['ann', 'bela', 'chen', 'dora', 'emil', 'kernel', 'toolchain', 'nightly', 'bisect', 'performance', 'vip', 'idle'];
const SUITES = ['unixbench', 'ltp', 'kselftest', 'iozone', 'lmbench', 'netperf', 'stream', 'build-kernel', 'syzkaller', 'fio'];
const GROUPS = ['taishan200-2280', 'hi1620-2p64g', 'vm-2p8g', 'vm-4p16g', 'dc-8g', 'dc-32g', 'skylake-2p', 'epyc-1p'];
export const STAGES_OPEN = ['submit', 'dispatch', 'boot', 'setup', 'wait_peer', 'running', 'post_run', 'manual_check'];

export function makeLab({ now, hosts: hostCount = 10_000, jobs: jobCount = 100_000 }) {
  const lab = { now, hosts: {}, queues: {}, jobs: [], byId: new Map(), timers: [], pools: [], audit: [], decisions: [] };
  makeHosts(lab, hostCount);
  makeJobs(lab, jobCount);
  makeQueues(lab);
  makeTimers(lab);
  makePools(lab);
  makeAudit(lab);
  return lab;
}

function makeHosts(lab, count) {
  for (let i = 0; i < count; i += 1) {
    const group = GROUPS[i % GROUPS.length];
    const kind = group.startsWith('vm') ? 'vm' : group.startsWith('dc') ? 'dc' : 'hw';
    const name = `${group}--${String(Math.floor(i / GROUPS.length) + 1).padStart(4, '0')}`;
    const roll = random();
    const state =
      roll < 0.78
        ? 'busy'
        : roll < 0.93
          ? 'waiting'
          : roll < 0.95
            ? 'idle'
            : roll < 0.965
              ? 'silent'
              : roll < 0.975
                ? 'off'
                : roll < 0.985
                  ? 'cordoned'
                  : roll < 0.99
                    ? 'draining'
                    : roll < 0.995
                      ? 'drained'
                      : 'suspect';
    const memory = [65536, 131072, 262144, 32768][i % 4];
    const used = state === 'busy' || state === 'draining' ? random() * 0.9 + 0.1 : 0;
    const row = {
      group,
      state,
      kinds: [kind],
      arch: i % 3 ? 'aarch64' : 'x86_64',
      memory_mb: memory,
      free_memory_mb: Math.round(memory * (1 - used)),
      cpus: 64,
      free_cpus: Math.round(64 * (1 - used * random())),
      jobs: [],
    };
    if (state === 'silent' || state === 'off') row.lost_ms = lab.now - between(1, 600) * MINUTE;
    const closed = { cordoned: 'cordon', draining: 'drain', drained: 'drain', suspect: 'suspect' }[state];
    if (closed === 'suspect')
      row.closed = { how: closed, reason: '3 jobs in a row ended with infra: nfs_hang', by: 'sched-2', at_ms: lab.now - between(5, 900) * MINUTE };
    else if (closed)
      row.closed = {
        how: closed,
        reason: pick(['new firmware', 'disk is full', 'moves to rack 7']),
        by: pick(['root', 'olga']),
        at_ms: lab.now - between(5, 9000) * MINUTE,
      };
    if (random() < 0.008)
      row.reserved = {
        accounts: [pick(ACCOUNTS)],
        until_ms: lab.now + between(1, 30) * HOUR,
        reason: 'debugging on the machine',
        by: 'olga',
        at_ms: lab.now - HOUR,
      };
    if (state === 'busy' && random() < 0.03) row.loaded = true;
    if (group === 'vm-4p16g' && i % 5 === 0) row.pool = 'cloud-a';
    lab.hosts[name] = row;
  }
}

function makeJobs(lab, count) {
  const busy = Object.entries(lab.hosts).filter(([, host]) => host.state === 'busy' || host.state === 'draining');
  let nextBusy = 0;
  for (let i = 0; i < count; i += 1) {
    const age = Math.floor((count - i) * ((48 * HOUR) / count));
    const submitted = lab.now - age;
    const job = newJob(lab, i, submitted);
    if (i < count - 14_000) endJob(job, submitted);
    else if (i < count - 5000 && nextBusy < busy.length) startJob(job, busy[nextBusy++], submitted);
    else waitJob(job, i, submitted, lab.now);
    lab.jobs.push(job);
    lab.byId.set(job.job_id, job);
  }
  makeShards(lab, busy);
}

function newJob(lab, i, submitted) {
  const account = ACCOUNTS[Math.floor(random() ** 2 * ACCOUNTS.length)];
  const suite = pick(SUITES);
  const cpus = pick([1, 2, 4, 8, 16]);
  const kernel = pick(['v6.6.58', 'v6.12.1', 'v6.12.2', 'next-20261120']);
  const compiler = pick(['gcc-12', 'gcc-14', 'clang-19']);
  const id = `${new Date(submitted).toISOString().slice(2, 10).replaceAll('-', '')}.${String(i).padStart(6, '0')}`;
  return {
    job_id: id,
    job_stage: 'submit',
    job_health: 'unknown',
    job_data_readiness: 'N/A',
    my_account: account,
    queue: QUEUES.includes(account) ? account : account === 'ci-gcc' ? 'toolchain' : pick(['kernel', 'nightly', 'bisect', 'performance']),
    priority: pick([0, 0, 0, 2, -2]),
    suite,
    params: `${kernel} ${compiler} nr_task=${cpus}`,
    kv: [`kernel=${kernel}`, `compiler=${compiler}`, `nr_task=${cpus}`, `suite=${suite}`],
    testbox: pick(GROUPS),
    tbox_group: pick(GROUPS),
    host: '',
    attempt: 1,
    submit_id: `s${Math.floor(i / 400)}`,
    memory_mb: 1024 * cpus,
    cpus,
    submit_ms: submitted,
    ready_ms: submitted,
    reason: '',
    result_root: '',
  };
}

function endJob(job, submitted) {
  const roll = random();
  const [health, failure] =
    roll < 0.86
      ? ['success', '']
      : roll < 0.95
        ? ['fail', 'fail']
        : roll < 0.97
          ? ['timeout_running', 'timeout']
          : roll < 0.98
            ? ['oom', 'oom']
            : roll < 0.985
              ? ['panic', 'panic']
              : roll < 0.995
                ? ['nfs_hang', 'infra']
                : ['cancel', ''];
  job.job_health = health;
  if (health === 'cancel') {
    job.job_stage = 'cancel';
    job.end_ms = submitted + between(1, 30) * MINUTE;
    job.reason = `cancelled by ${job.my_account}`;
    return;
  }
  job.job_stage = 'finish';
  job.host = `${job.tbox_group}--${String(between(1, 1250)).padStart(4, '0')}`;
  job.dispatch_ms = submitted + between(1, 3000) * 1000;
  job.running_ms = job.dispatch_ms + between(20, 200) * 1000;
  job.end_ms = job.running_ms + between(30, 5000) * 1000;
  job.job_data_readiness = 'complete';
  job.exit_code = health === 'success' ? 0 : health === 'fail' ? pick([1, 2, 77]) : undefined;
  if (failure) job.failure = failure;
  job.reason =
    {
      fail: 'the script exited with 1',
      timeout: 'ran over its limit of 1 h',
      oom: 'the kernel killed it: out of memory',
      panic: 'the console says that the kernel stopped',
      infra: 'NFS did not answer',
    }[failure] ?? '';
  if (failure === 'panic') job.crash_signature = 'BUG: unable to handle page fault in ext4_mb_load_buddy';
  job.result_root = `/result/${job.suite}/${job.job_id}`;
}

function startJob(job, [name, host], submitted) {
  job.host = name;
  job.tbox_group = host.group;
  job.dispatch_ms = submitted + between(1, 900) * 1000;
  job.job_stage = pick(['running', 'running', 'running', 'running', 'running', 'boot', 'setup', 'post_run', 'dispatch', 'wait_peer']);
  if (['running', 'post_run'].includes(job.job_stage)) job.running_ms = job.dispatch_ms + between(20, 200) * 1000;
  job.result_root = `/result/${job.suite}/${job.job_id}`;
  host.jobs.push(job.job_id);
}

function waitJob(job, i, submitted, now) {
  job.submit_ms = Math.min(submitted, now - between(1, 400) * 1000);
  job.ready_ms = job.submit_ms;
  if (i % 11 === 0) {
    job.ready_ms = undefined;
    job.reason = 'waits for 1 job';
  } else if (i % 37 === 0) {
    job.held_by = job.my_account;
    job.reason = `held by ${job.my_account}`;
  }
}

function makeShards(lab, busy) {
  const parent = lab.jobs.at(-6001);
  Object.assign(parent, {
    suite: 'ltp',
    my_account: 'ann',
    queue: 'ann',
    job_stage: 'running',
    job_health: 'unknown',
    end_ms: undefined,
    host: '',
    failure: undefined,
    exit_code: undefined,
    params: 'syscalls',
    shards: { count: 200, running: 58, over: 121, failed: 9, reused: 14 },
    dispatch_ms: lab.now - 50 * MINUTE,
    running_ms: lab.now - 49 * MINUTE,
    reason: '121 of 200 shards have ended',
    job_id: 'sharded.000200',
  });
  lab.byId.set(parent.job_id, parent);
  lab.parts = [];
  for (let shard = 1; shard <= 200; shard += 1) {
    const roll = (shard * 61) % 200;
    const over = roll < 121;
    const failed = roll < 9;
    lab.parts.push({
      shard,
      job_id: `sharded.000200-${shard}`,
      job_stage: over ? 'finish' : roll < 179 ? 'running' : 'submit',
      job_health: over ? (failed ? 'fail' : 'success') : 'unknown',
      attempt: failed ? 2 : 1,
      host: over || roll < 179 ? busy[shard][0] : undefined,
      reason: failed ? 'the script exited with 1' : '',
      cases: over
        ? { passed: 41 - (failed ? 2 : 0), failed: failed ? 2 : 0, skipped: 1, first_failures: failed ? ['fcntl14', 'fcntl17'] : undefined }
        : undefined,
      reused_from: roll > 106 && roll < 121 ? 'older.000001' : undefined,
    });
  }
}

function makeQueues(lab) {
  const count = {};
  for (const job of lab.jobs) {
    const of = (count[job.queue] ??= { waiting: 0, running: 0, oldest: Infinity });
    if (job.job_stage === 'submit') {
      of.waiting += 1;
      if (job.ready_ms) of.oldest = Math.min(of.oldest, job.ready_ms);
    } else if (!job.end_ms) of.running += 1;
  }
  const weights = [100, 100, 50, 200, 100, 800, 400, 300, 100, 200, 100, 10];
  const total = weights.reduce((a, b) => a + b, 0);
  QUEUES.forEach((name, i) => {
    const of = count[name] ?? { waiting: 0, running: 0, oldest: Infinity };
    const wanted = Math.round((weights[i] * 1000) / total);
    lab.queues[name] = {
      name,
      priority: name === 'vip' ? 9 : name === 'idle' ? 0 : 5,
      weight: weights[i],
      paused: name === 'bisect',
      waiting: of.waiting,
      running: of.running,
      share_permille: wanted,
      got_1h_permille: Math.max(0, wanted + between(-30, 30)),
      got_24h_permille: Math.max(0, wanted + between(-20, 20)),
      got_7d_permille: Math.max(0, wanted + between(-10, 10)),
      oldest_ready_ms: Number.isFinite(of.oldest) ? of.oldest : undefined,
      limits: name === 'nightly' ? { running: { soft: 400, hard: 800 } } : undefined,
      users: name === 'kernel' ? ['ann', 'ci-kernel'] : 'own',
      warning: name === 'idle' ? 'nobody may submit into it' : undefined,
    };
  });
}

function makeTimers(lab) {
  const at = ms => new Date(ms).toISOString().slice(0, 19) + '+0000';
  for (let i = 0; i < 24; i += 1) {
    lab.timers.push({
      timer: pick(['nightly-ltp', 'hourly-smoke', 'weekly-perf', 'daily-gcc']) + `-${i}`,
      my_account: pick(ACCOUNTS),
      suite: pick(SUITES),
      ...(i % 2 ? { cron: '0 2 * * *', timezone: 'Europe/Berlin' } : { every: '6h' }),
      overlap: 'skip',
      missed: 'once',
      paused: i % 9 === 4,
      next_run: i % 9 === 4 ? undefined : at(lab.now + between(1, 900) * MINUTE),
      last_run: { due_time: at(lab.now - 3 * HOUR), due_ms: lab.now - 3 * HOUR, job_id: lab.jobs[between(0, 80_000)].job_id },
      runs: between(3, 900),
      skipped_runs: i % 5,
      missed_runs: 0,
      refused_runs: i === 7 ? 3 : 0,
      why: i === 7 ? 'the account may have 1000 waiting jobs, and has 1000' : '',
    });
  }
}

function makePools(lab) {
  const machines = ['busy', 'runs', 'runs', 'idle', 'boots', 'asked', 'retires'].slice(1).flatMap((state, i) =>
    Array.from({ length: 7 - i }, (_, n) => ({
      name: `vm-4p16g--c${i}${n}`,
      state,
      asked_ms: lab.now - between(2, 300) * MINUTE,
      jobs: between(0, 60),
      why: state === 'retires' ? 'idle for 10 minutes' : '',
    })),
  );
  const pool = {
    name: 'cloud-a',
    provider: 'https://provider.example/v1',
    machine: { kinds: ['vm'], memory_mb: 16384, cpus: 4, arch: 'aarch64', group: 'vm-4p16g' },
    min: 2,
    max: 60,
    max_step: 10,
    target_s: 300,
    horizon_s: 300,
    cooldown_s: 0,
    low_rounds: 1,
    low_use_percent: 100,
    law: 'backlog',
    max_idle_s: 600,
    max_jobs: 0,
    max_age_s: 0,
    paused: false,
    boot_s: 71,
    boots: 212,
    machines,
    problem: '',
  };
  lab.pools.push(pool, { ...pool, name: 'cloud-b', machines: [], problem: 'the provider answered 503 for 4 minutes', min: 0, max: 20 });
  for (let n = 40; n > 0; n -= 1) {
    lab.decisions.push({
      pool: 'cloud-a',
      number: n,
      at_ms: lab.now - (41 - n) * 4 * MINUTE,
      replica: 'sched-1',
      law: 'backlog',
      added: n % 3 ? [] : ['c1', 'c2'],
      retired: n % 4 ? [] : ['c0'],
      waiting: n * 3,
      work_s: n * 900,
      supply_s: 7000,
      horizon_s: 300,
      wanted: 20,
      booting: 2,
      busy: 14,
      idle: 3,
      closed: 0,
      sentence: n % 3 ? 'The machines are enough for what waits.' : '36 jobs wait for 2 more machines than there are.',
    });
  }
}

function makeAudit(lab) {
  const names = Object.keys(lab.hosts);
  for (let i = 0; i < 600; i += 1) {
    const [what, subject, detail] = pick([
      ['host.cordon', pick(names), { reason: 'new firmware' }],
      ['queue.set', pick(QUEUES), { weight: 200 }],
      ['job.cancel', pick(lab.jobs).job_id, {}],
      ['host.reserve', pick(names), { accounts: ['chen'], until: '+4h' }],
      ['host.lost', pick(names), { silent_s: 62 }],
      ['host.back', pick(names), { away_s: 240 }],
      ['host.suspect', pick(names), { reason: '3 jobs failed there in a row' }],
      ['replica.start', 'sched-2', { version: '0.9.0' }],
      ['store.outage', 'store', { seconds: 14 }],
    ]);
    const who = /lost|back|suspect|replica|store/.test(what) ? 'sched-2' : pick(['olga', 'root', 'ann', 'chen']);
    lab.audit.push({ at_ms: lab.now - i * 7 * MINUTE, who, what, subject, detail });
  }
}
