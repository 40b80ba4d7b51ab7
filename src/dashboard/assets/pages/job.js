// One job: where it is, why it waits or failed, what it did, and what can be done.

import { html, useEffect } from '../ui.js';
import { address } from '../route.js';
import { getJson, query } from '../api.js';
import { Ago, count, isOver, jobState, JobState, Lasts, memory, momentOf, span, now } from '../format.js';
import { openAction } from '../components/action.js';
import { useChanges } from '../components/changes.js';
import { Costs } from '../components/costs.js';
import { Log } from '../components/log.js';
import { AccountLink, Empty, HostLink, JobLink, num, Panel, Problem, QueueLink, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

/** While a job waits, why it does is asked again so often. */
const EXPLAIN_MS = 15_000;
/** A job that changes often is asked for again at most so often. */
const AGAIN_MS = 2000;
const SHARDS_SHOWN = 2000;
const STEPS = [
  ['submit', 'waits'],
  ['dispatch', 'dispatched'],
  ['boot', 'boots'],
  ['setup', 'sets up'],
  ['wait_peer', 'waits for peers'],
  ['running', 'runs'],
  ['post_run', 'collects'],
  ['manual_check', 'held for a person'],
];
const KNOWN = new Set([
  'job_id',
  'id',
  'job_stage',
  'job_state',
  'istage',
  'job_health',
  'job_data_readiness',
  'idata_readiness',
  'my_account',
  'queue',
  'host',
  'host_machine',
  'attempts',
  'cases',
  'reason',
  'params',
  'suite',
  'kv',
  'shards',
]);

/** How soon the job is asked for again after a change. */
const soonFor =
  id =>
  ({ ids, more }) =>
    ids.includes(id) ? 0 : more ? AGAIN_MS : undefined;

/** Stages that the attempt went through, with when each began and ended. */
function steps(job) {
  const began = STEPS.map(([stage, word]) => ({ stage, word, at: job[`${stage}_ms`] ?? momentOf(job[`${stage}_time`]) })).filter(step => step.at);
  const end = job.end_ms ?? now.value;
  return began.map((step, i) => ({ ...step, until: began[i + 1]?.at ?? end })).filter(step => step.until >= step.at);
}

function Timeline({ job }) {
  const all = steps(job);
  if (!all.length) return null;
  const begin = all[0].at;
  const whole = Math.max(1, all.at(-1).until - begin);
  const over = isOver(job);
  return html`<div class="timeline" aria-hidden="true">
      ${all.map(
        (step, i) => html`<span key=${step.stage} class=${`fill stage-${step.stage} ${!over && i === all.length - 1 ? 'live' : ''}`}
        style=${{ flexGrow: Math.max(0.004, (step.until - step.at) / whole) }} title=${`${step.word}: ${span(step.until - step.at)}`}></span>`,
      )}</div>
    <ol class="steps">${all.map(
      (step, i) => html`<li key=${step.stage}><span class=${`dot stage-${step.stage}`} aria-hidden="true"></span><b>
          ${step.word}</b> <${Lasts} since=${step.at} until=${!over && i === all.length - 1 ? undefined : step.until} /> <span class="faint">
          <${Ago} ms=${step.at} /></span></li>`,
    )}
      ${over && html`<li><${JobState} job=${job} /> <span class="faint"><${Ago} ms=${job.end_ms} /></span></li>`}</ol>`;
}

/** The first answer: why it waits, where it is, or why it failed. */
function Why({ id, job }) {
  const waits = job.job_stage === 'submit';
  const explained = useLoad(stop => getJson(`jobs/${encodeURIComponent(id)}/explain`, { signal: stop }), [id, job.job_stage, job.attempt]);
  useEffect(() => {
    if (!waits) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) explained.again();
    }, EXPLAIN_MS);
    return () => clearInterval(timer);
  }, [id, waits]);
  const said = explained.data.value;
  const [sign, tone, word] = jobState(job);
  return html`<div class=${`why ${tone}`}><p class="answer"><span class=${`state ${tone}`}><span class="sign" aria-hidden="true">${sign}</span>
        ${word}</span> <span>${said?.summary ?? (explained.error.value ? job.reason : ' ')}</span></p>
    ${
      job.crash_signature &&
      html`<p>
        <b>Kernel crash:</b> <a href=${address('jobs', '', { signature: job.crash_signature })} title="All jobs with this crash">
          ${job.crash_signature}</a></p>`
    }
    ${
      job.failure &&
      html`<p>Failure: <b>${job.failure}</b>${job.exit_code !== undefined && ` · exit code ${job.exit_code}`}
        ${job.last_success_stage && ` · it came as far as ${job.last_success_stage}`}</p>`
    }
    ${said?.reasons.length > 0 && html`<ul>${said.reasons.map(reason => html`<li key=${reason}>${reason}</li>`)}</ul>`}
    <${Costs} costs=${said?.costs} />
    ${
      waits &&
      said?.hosts.length > 0 &&
      html`<details open>
      <summary>Hosts, as this job sees them: ${count(said.hosts.length + said.hosts_more)}</summary><${Wide} label="Hosts, from this job">
        <table class="rows"><caption class="unseen">Hosts and what they lack</caption><thead><tr>
              <th scope="col">Host</th><th scope="col">Could run it</th><th scope="col">Lacks or waits for</th></tr></thead><tbody>
      ${said.hosts.map(
        host => html`<tr key=${host.hostname} data-row tabindex="-1"><td><${HostLink} name=${host.hostname} /></td><td>
                  ${
                    host.could
                      ? html`<span class="state good">
                    <span class="sign" aria-hidden="true">✓</span>yes</span>`
                      : html`<span class="state off">
                    <span class="sign" aria-hidden="true">✗</span>no</span>`
                  }</td><td>
                        ${host.lacks.join('; ') || 'nothing'}</td></tr>`,
      )}</tbody></table></${Wide}>
      ${said.hosts_more > 0 && html`<p class="faint">${count(said.hosts_more)} more hosts are not shown.</p>`}</details>`
    }</div>`;
}

function Facts({ job }) {
  const pair = (name, value) => value !== undefined && value !== '' && html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`<dl class="facts">
    ${pair('Account', html`<${AccountLink} name=${job.my_account} />`)}${pair(
      'Queue',
      html`<${QueueLink} name=${job.queue} />
      ${job.queue_label && ` · ${job.queue_label}`}`,
    )}${pair('Priority', job.priority)}
    ${pair('Host', html`<${HostLink} name=${job.host} />`)}${pair('Asked for', `${job.testbox}${job.arch ? ` · ${job.arch}` : ''}`)}
      ${pair('Needs', `${job.cpus} CPUs · ${memory(job.memory_mb)}`)}
    ${pair('Submit', job.submit_id && html`<a href=${address('submits', job.submit_id)}>${job.submit_id}</a>`)}${pair('Group', job.group_id)}
      ${pair('Try', job.attempt)}
    ${pair('Submitted', html`<${Ago} ms=${job.submit_ms} />`)}${pair('Time limit', span(job.timeout_seconds * 1000))}
      ${pair('Must end', job.deadline_ms && !isOver(job) && html`<${Ago} ms=${job.deadline_ms} />`)}
    ${pair('Used', job.peak_memory_mb && `${memory(job.peak_memory_mb)} at most · ${span(job.cpu_ms)} of CPU`)}
        ${pair('Result of', job.reused_from && html`<${JobLink} id=${job.reused_from} />`)}
        ${pair('Runs again', job.rerun_of && html`<${JobLink} id=${job.rerun_of} />`)}${pair('Held by', job.held_by)}
    ${pair(
      'Nodes',
      job.cluster_jobs?.map(node => html`<${JobLink} key=${node} id=${node} /> `),
    )}${pair('Node', job.node_roles)}</dl>`;
}

function Attempts({ job }) {
  if (!job.attempts?.length) return null;
  return html`<${Panel} title="Earlier tries"><${Wide} label="Earlier tries"><table class="rows"><caption class="unseen">Earlier tries</caption>
        <thead><tr><th scope="col" class="num">Try</th><th scope="col">Ended</th><th scope="col">Host</th><th scope="col" class="num">Ran</th>
            <th scope="col">Why</th></tr></thead><tbody>
    ${job.attempts.map(
      one => html`<tr key=${one.attempt} data-row tabindex="-1">${num(one.attempt)}<td><${JobState} job=${one} /></td><td>
                  <${HostLink} name=${one.host} /></td><td class="num"><${Lasts} since=${one.dispatch_ms} until=${one.end_ms} /></td><td>
                  ${one.reason} <a href=${`/scheduler/v1/jobs/${encodeURIComponent(job.job_id)}/log${query({ attempt: one.attempt })}`} target="_blank"
                    rel="noopener">log</a></td></tr>`,
    )}</tbody></table></${Wide}></${Panel}>`;
}

function Tests({ job }) {
  const cases = job.cases;
  if (!cases) return null;
  return html`<${Panel} title="Tests" note=${`${count(cases.passed + cases.failed + cases.skipped)} cases`}><p class="counts">
      <span class="state good"><span class="sign" aria-hidden="true">✓</span>${count(cases.passed)} passed</span>
      <span class=${`state ${cases.failed ? 'bad' : 'off'}`}><span class="sign" aria-hidden="true">✗</span>${count(cases.failed)} failed</span>
      <span class="state off"><span class="sign" aria-hidden="true">⊘</span>${count(cases.skipped)} skipped</span></p>
    ${
      cases.first_failures?.length > 0 &&
      html`<p class="faint">The first that failed:</p><ul class="plain">
          ${cases.first_failures.map(name => html`<li key=${name} class="id">${name}</li>`)}</ul>`
    }
        <${TestHistory} suite=${job.suite} failures=${cases.first_failures ?? []} /></${Panel}>`;
}

/** How often these tests failed before: a test that often fails says little of this job. */
function TestHistory({ suite, failures }) {
  const loaded = useLoad(
    stop => (failures.length ? getJson(`tests${query({ suite, limit: 200 })}`, { signal: stop }) : Promise.resolve([])),
    [suite, failures.join()],
  );
  const known = (loaded.data.value ?? []).filter(test => failures.some(name => test.test.endsWith(name)));
  if (!known.length) return null;
  return html`<${Wide} label="History of these tests"><table class="rows"><caption>How often they failed before</caption><thead><tr>
            <th scope="col">Test</th><th scope="col">Group of hosts</th><th scope="col" class="num">Passed</th>
                  <th scope="col" class="num">Failed</th></tr></thead><tbody>
                ${known.map(
                  test => html`<tr key=${test.test + test.group} data-row tabindex="-1"><td class="id">${test.test}</td><td>
              ${test.group}</td>${num(count(test.passed))}${num(count(test.failed))}</tr>`,
                )}</tbody></table></${Wide}>`;
}

/** Nothing was uploaded: not yet, or never. */
const NO_RESULTS = ['N/A', 'norun'];

function Results({ job }) {
  const { result_root: root, job_data_readiness: readiness } = job;
  const has = root && !NO_RESULTS.includes(readiness);
  const loaded = useLoad(stop => (has ? getJson(root, { signal: stop }) : Promise.resolve([])), [root, readiness]);
  const files = loaded.data.value ?? [];
  return html`<${Panel} title="Results" note=${job.job_data_readiness}>${
    files.length
      ? html`<ul class="files">
        ${files.map(
          name => html`<li key=${name}><a class="id" href=${`${root}/${name.split('/').map(encodeURIComponent).join('/')}`} target="_blank" rel="noopener">
              ${name}</a></li>`,
        )}</ul>`
      : html`<${Empty}>${loaded.error.value ? loaded.error.value.message : 'No file yet.'}</${Empty}>`
  }</${Panel}>`;
}

/** Whether it has the result of another job, and why or why not. Jobs that never reuse have nothing to say. */
function Reuse({ id, job }) {
  const loaded = useLoad(stop => getJson(`jobs/${encodeURIComponent(id)}/reuse`, { signal: stop }), [id, job.job_stage]);
  const said = loaded.data.value;
  if (!said || said.verdict === 'never') return null;
  const { nearest } = said;
  const differs = Object.entries(nearest?.differs ?? {}).map(([part, fields]) => (fields.length ? `${part} (${fields.join(', ')})` : part));
  return html`<${Panel} title="Reuse" note=${said.verdict}><div class="why"><p class="answer">${said.summary}</p>${
    nearest &&
    html`<p class="faint">The nearest earlier job <${JobLink} id=${nearest.job_id} /> (${nearest.job_health})
        ${differs.length ? `differs in ${differs.join('; ')}` : 'ran the same thing'}.</p>`
  }</div></${Panel}>`;
}

function Shards({ id, job }) {
  const has = !!(job.shards_total || job.shards);
  const loaded = useLoad(stop => (has ? getJson(`/r/${encodeURIComponent(id)}?format=json`, { signal: stop }) : Promise.resolve(null)), [id, has]);
  useChanges(soonFor(id), loaded.again, [id], has);
  const answer = loaded.data.value;
  if (!has) return null;
  if (!answer) return html`<${Panel} title="Shards"><${Skeleton} rows=${4} /></${Panel}>`;
  const { shards, parts = [] } = answer;
  const failed = parts.filter(part => part.job_health !== 'unknown' && part.job_health !== 'success' && part.job_stage);
  return html`<${Panel} title="Shards"
    note=${`${count(shards.over)} of ${count(shards.count)} have ended, ${count(shards.failed)} failed, ${count(shards.running)} run${shards.reused ? `, ${count(shards.reused)} reused` : ''}`}
    more=${
      failed.length > 0 &&
      isOver(job) &&
      html`<button
    onClick=${() => openAction({ action: 'rerun', jobs: failed.map(part => part.job_id) })}>Run failed again …</button>`
    }>
    <div class="grid">
        ${parts.slice(0, SHARDS_SHOWN).map(part => {
          const [sign, tone, word] = jobState(part);
          return html`<a key=${part.shard} data-row class=${`cell ${tone}`} href=${address('jobs', part.job_id)}
            title=${`shard ${part.shard}: ${word}${part.host ? ` on ${part.host}` : ''}${part.reused_from ? ', reused' : ''}${part.reason ? `: ${part.reason}` : ''}`}
            aria-label=${`shard ${part.shard}: ${word}`}>
          ${sign}<small>${part.shard}</small></a>`;
        })}</div>
      ${
        parts.length > SHARDS_SHOWN &&
        html`<p class="faint">The first ${count(SHARDS_SHOWN)} are shown. <a
          href=${address('jobs', '', { shards_of: id })}>All shards</a></p>`
      }
    ${
      failed.length > 0 &&
      html`<${Wide} label="Shards that failed"><table class="rows"><caption>Failed shards</caption><thead><tr>
                <th scope="col">Shard</th><th scope="col">Ended</th><th scope="col">Host</th><th scope="col">First failures</th>
                <th scope="col">Why</th></tr></thead><tbody>${failed.map(
                  part => html`<tr key=${part.shard} data-row tabindex="-1"><td>
                  <a href=${address('jobs', part.job_id)}>${part.shard}</a></td><td><${JobState} job=${part} /></td><td>
                  <${HostLink} name=${part.host} /></td><td class="id">${part.cases?.first_failures?.join(', ')}</td><td>
                      ${part.reason}</td></tr>`,
                )}</tbody></table></${Wide}>`
    }</${Panel}>`;
}

function Buttons({ id, job }) {
  const act = action => html`<button key=${action[0]} data-action=${action[0]} onClick=${() => openAction({ action: action[0], jobs: [id] })}>
    ${action[1]} …</button>`;
  if (isOver(job)) return act(['rerun', 'Run again']);
  return job.job_stage === 'submit'
    ? [['cancel', 'Cancel'], ['change', 'Queue, priority'], job.held_by ? ['release', 'Release'] : ['hold', 'Hold']].map(act)
    : act(['terminate', 'Stop']);
}

function AllFields({ job }) {
  const fields = Object.entries(job).filter(([name, value]) => !KNOWN.has(name) && !name.endsWith('_ms') && value !== null && value !== '');
  return html`<details class="panel all-fields"><summary>All fields of the job</summary><dl class="fields">
        ${fields.map(
          ([name, value]) => html`<div key=${name}><dt>${name}</dt><dd class="id">
            ${typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd></div>`,
        )}</dl></details>`;
}

export default function Job({ name: id }) {
  const loaded = useLoad(stop => getJson(`jobs/${encodeURIComponent(id)}`, { signal: stop }), [id]);
  useChanges(soonFor(id), loaded.again, [id], !loaded.data.value || !isOver(loaded.data.value));
  const job = loaded.data.value;
  if (!job)
    return html`<${Title} kind="Job">${id}</${Title}>
    ${loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} rows=${14} />`}`;
  return html`<${Title} kind=${`Job of suite ${job.suite}`} title=${`${id} ${jobState(job)[2]}`} actions=${html`<${Buttons} id=${id} job=${job} />`}>
      ${id}</${Title}>
    ${job.params && html`<p class="subtitle id">${job.params}</p>`}
    <div class="columns job"><div><${Why} id=${id} job=${job} /><${Panel} title="Timeline" note=${`try ${job.attempt}`}>
          <${Timeline} job=${job} /></${Panel}><${Shards} id=${id} job=${job} /><${Tests} job=${job} />
      ${
        job.dispatch_ms &&
        !job.shards_total &&
        html`<${Panel} title="Output">
          <${Log} id=${id} attempt=${job.attempt} over=${isOver(job)} /></${Panel}>`
      }<${Attempts} job=${job} /></div>
      <div class="side"><${Panel} title="Facts"><${Facts} job=${job} /></${Panel}><${Results} job=${job} />
          <${Reuse} id=${id} job=${job} /></div></div><${AllFields} job=${job} />`;
}
