// Actions of mock.mjs: previews, and what they do.

import { matches } from './jobs.mjs';

const WILL = {
  cancel: 'cancelled',
  terminate: 'stopped',
  rerun: 'submitted again',
  change: 'changed',
  hold: 'held',
  release: 'released',
  cordon: 'cordoned',
  drain: 'drained',
  uncordon: 'opened',
  reserve: 'reserved',
  unreserve: 'given back',
};
let number = 0;

function chosen(lab, asked) {
  if (asked.jobs) return asked.jobs.map(id => lab.byId.get(id)).filter(Boolean);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked.filter ?? {})) for (const one of [value].flat()) query.append(name, one);
  return lab.jobs.filter(matches(query));
}

function splitJobs(lab, asked) {
  const can = {
    cancel: job => job.job_stage === 'submit',
    hold: job => job.job_stage === 'submit',
    release: job => job.job_stage === 'submit' && job.held_by,
    change: job => job.job_stage === 'submit',
    terminate: job => job.job_stage !== 'submit' && !job.end_ms,
    rerun: job => !!job.end_ms,
  }[asked.action];
  const jobs = chosen(lab, asked);
  const items = jobs.filter(can).map(job => ({
    id: job.job_id,
    what: job.job_stage === 'submit' ? `waiting in queue ${job.queue}, priority ${job.priority}` : `${job.job_stage} on ${job.host}`,
    will: WILL[asked.action],
  }));
  const left = jobs
    .filter(job => !can(job))
    .map(job => ({ id: job.job_id, why: job.end_ms ? 'it has ended' : job.job_stage === 'submit' ? 'it waits' : 'it runs' }));
  return [
    items,
    left,
    `This ${{ cancel: 'cancels', terminate: 'stops', rerun: 'submits', change: 'changes', hold: 'holds', release: 'releases' }[asked.action]} ${items.length} jobs${asked.action === 'rerun' ? ' again' : ''}.`,
  ];
}

function splitHosts(lab, asked) {
  const items = asked.hosts.map(name => ({
    id: name,
    what: `${lab.hosts[name].state}, ${lab.hosts[name].jobs.length} jobs`,
    will: WILL[asked.action],
  }));
  return [
    items,
    [],
    `This ${{ cordon: 'gives no new job to', drain: 'empties', uncordon: 'opens', reserve: 'reserves', unreserve: 'gives back' }[asked.action]} ${items.length} hosts.`,
  ];
}

function shares(lab, weights) {
  const weight = name => weights[name] ?? lab.queues[name].weight;
  const names = Object.keys(lab.queues);
  const total = names.reduce((sum, name) => sum + weight(name), 0);
  return names.map(queue => ({ queue, now_permille: lab.queues[queue].share_permille, then_permille: Math.round((weight(queue) * 1000) / total) }));
}

export function makePreview(lab, asked) {
  number += 1;
  let [items, left, sentence] = [[], [], ''];
  if (asked.hosts) [items, left, sentence] = splitHosts(lab, asked);
  else if (asked.action === 'weights') {
    items = Object.entries(asked.weights).map(([id, weight]) => ({ id, what: `weight ${lab.queues[id].weight}`, will: `weight ${weight}` }));
    sentence = `This changes the weights of ${items.length} queues.`;
  } else if (asked.queue && asked.action.endsWith('_queue')) {
    items = [
      { id: asked.queue, what: `${lab.queues[asked.queue].waiting} jobs wait`, will: asked.action.startsWith('pause') ? 'paused' : 'resumed' },
    ];
    sentence = `This ${asked.action.startsWith('pause') ? 'pauses' : 'resumes'} queue ${asked.queue}.`;
  } else if (asked.action.endsWith('_lab')) {
    items = [{ id: 'lab', what: 'all queues', will: asked.action.startsWith('pause') ? 'paused' : 'resumed' }];
    sentence = asked.action.startsWith('pause')
      ? 'This pauses the whole lab: no job is dispatched until somebody resumes it.'
      : 'This resumes the lab.';
  } else [items, left, sentence] = splitJobs(lab, asked);
  const made = Date.now();
  return {
    preview_id: `p${number}`,
    action: asked.action,
    by: 'olga',
    made_ms: made,
    expires_ms: made + 600_000,
    sentence,
    total: items.length,
    items: items.slice(0, 200),
    items_more: Math.max(0, items.length - 200),
    left_out: left.slice(0, 200),
    left_out_more: Math.max(0, left.length - 200),
    shares: asked.action === 'weights' ? shares(lab, asked.weights) : undefined,
    state: 'previewed',
    done: 0,
    failed: [],
    asked,
  };
}

export function runPreview(lab, preview, changed, pauseLab) {
  if (preview.state !== 'previewed') return;
  preview.state = 'running';
  const timer = setInterval(() => {
    preview.done = Math.min(preview.total, preview.done + Math.max(1, Math.ceil(preview.total / 3)));
    if (preview.done < preview.total) return;
    clearInterval(timer);
    preview.state = 'done';
    if (preview.total > 3) preview.failed.push({ id: preview.items[0].id, why: 'somebody else changed it meanwhile' });
    apply(lab, preview, changed, pauseLab);
  }, 500);
}

function apply(lab, { action, asked, items }, changed, pauseLab) {
  const state = { cordon: 'cordoned', drain: 'draining', uncordon: 'waiting' }[action];
  if (action.endsWith('_lab')) return pauseLab(action === 'pause_lab' ? { by: 'olga', reason: asked.reason ?? '', at_ms: Date.now() } : undefined);
  if (action.endsWith('_queue')) {
    lab.queues[asked.queue] = { ...lab.queues[asked.queue], paused: action === 'pause_queue' };
    return changed({ queues: { [asked.queue]: lab.queues[asked.queue] } });
  }
  if (asked.hosts) {
    const hosts = {};
    for (const { id } of items) {
      const host = {
        ...lab.hosts[id],
        ...(state && { state }),
        closed: state && state !== 'waiting' ? { how: action, reason: asked.reason ?? '', by: 'olga', at_ms: Date.now() } : undefined,
      };
      if (action === 'reserve')
        host.reserved = {
          accounts: asked.accounts,
          until_ms: Date.now() + asked.hours * 3_600_000,
          reason: asked.reason ?? '',
          by: 'olga',
          at_ms: Date.now(),
        };
      if (action === 'unreserve') delete host.reserved;
      lab.hosts[id] = hosts[id] = host;
    }
    return changed({ hosts });
  }
  if (action !== 'cancel') return undefined;
  const jobs = items.map(item => lab.byId.get(item.id));
  for (const job of jobs) Object.assign(job, { job_stage: 'cancel', job_health: 'cancel', end_ms: Date.now(), reason: 'cancelled by olga' });
  return changed(
    {},
    jobs.map(job => job.job_id),
  );
}
