// Pools of machines that come and go: how many there are, what they do, and why the lab wanted more or fewer.

import { html } from '../ui.js';
import { address } from '../route.js';
import { getJson } from '../api.js';
import { Ago, count, memory, plural, span } from '../format.js';
import { Empty, HostLink, num, Panel, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

const STATES = { asked: ['…', 'calm'], boots: ['↑', 'calm'], runs: ['►', 'work'], idle: ['◦', 'good'], closed: ['‖', 'warn'], retires: ['↓', 'off'] };
const DECISIONS = 100;

const State = ({ state }) => html`<span class=${`state ${(STATES[state] ?? ['?', 'bad'])[1]}`}><span class="sign" aria-hidden="true">
      ${(STATES[state] ?? ['?'])[0]}</span>${state}</span>`;

function States({ machines }) {
  const by = Object.groupBy(machines, machine => machine.state);
  return html`<span class="counts">
      ${Object.keys(STATES)
        .filter(state => by[state])
        .map(
          state => html`<span key=${state} class=${`state ${STATES[state][1]}`}>
        <span class="sign" aria-hidden="true">${STATES[state][0]}</span>${count(by[state].length)} ${state}</span>`,
        )}</span>`;
}

function PoolRow({ pool }) {
  return html`<tr data-row tabindex="-1"><td><a href=${address('pools', pool.name)}>${pool.name}</a>${
    pool.paused &&
    html` <span class="state warn">
        <span class="sign" aria-hidden="true">‖</span>paused</span>`
  }</td>${num(count(pool.machines.length))}<td class="num">
      ${count(pool.min)} to ${count(pool.max)}</td><td><${States} machines=${pool.machines} /></td><td>
      ${pool.machine.group} · ${memory(pool.machine.memory_mb)} · ${pool.machine.cpus} CPUs</td>
    <td class="num" title=${pool.boots ? `mean of ${plural(pool.boots, 'boot')}` : 'as was said'}>${span(pool.boot_s * 1000)}</td><td class="num">
          ${span(pool.horizon_s * 1000)}</td><td class=${pool.problem ? 'bad' : ''}>${pool.problem ? `✗ ${pool.problem}` : ''}</td></tr>`;
}

function Pools() {
  const loaded = useLoad(stop => getJson('pools', { signal: stop }), []);
  const pools = loaded.data.value;
  return html`<${Title}>Pools</${Title}><${Problem} error=${loaded.error.value} retry=${loaded.again} />
    <${Panel} title="Pools of machines that come and go">
      ${
        !pools
          ? html`<${Skeleton} rows=${4} />`
          : !pools.length
            ? html`<${Empty}>There is no pool: all machines of this lab stay.</${Empty}>`
            : html`<${Wide} label="Pools">
        <table class="rows"><caption class="unseen">Pools</caption><thead><tr><th scope="col">Pool</th><th scope="col" class="num">Machines</th>
              <th scope="col" class="num">May have</th><th scope="col">They</th><th scope="col">Machine</th>
              <th scope="col" class="num" title="How long a machine takes until it asks for work">Boot</th>
              <th scope="col" class="num" title="How long jobs should wait at most">Target</th><th scope="col">Problem</th></tr></thead><tbody>
            ${pools.map(pool => html`<${PoolRow} key=${pool.name} pool=${pool} />`)}</tbody></table></${Wide}>`
      }</${Panel}>`;
}

function Decisions({ name }) {
  const loaded = useLoad(stop => getJson(`pools/${encodeURIComponent(name)}/decisions?limit=${DECISIONS}`, { signal: stop }), [name]);
  const list = loaded.data.value;
  if (!list) return loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} rows=${8} />`;
  if (!list.length) return html`<${Empty}>Nothing was decided yet.</${Empty}>`;
  const th = (title, means) => html`<th scope="col" class="num" title=${means}>${title}</th>`;
  return html`<${Wide} label="Decisions"><table class="rows"><caption class="unseen">Decisions, newest first</caption><thead><tr>
            <th scope="col">When</th><th scope="col">Decision</th>${th('Added')}${th('Retired')}${th('Wait', 'Jobs that lacked only a machine')}
            ${th('Wanted', 'Machines that the law wanted, before limits')}${th('Boot')}${th('Busy')}${th('Idle')}</tr></thead><tbody>
          ${list.map(
            one => html`<tr key=${one.number} data-row tabindex="-1"><td><${Ago} ms=${one.at_ms} /></td><td>${one.sentence}</td>
            <td class="num" title=${one.added.join(', ')}>${one.added.length || ''}</td><td class="num" title=${one.retired.join(', ')}>
              ${one.retired.length || ''}</td>${num(count(one.waiting))}${num(count(one.wanted))}${num(count(one.booting))}${num(count(one.busy))}
            ${num(count(one.idle))}</tr>`,
          )}</tbody></table></${Wide}>`;
}

function Pool({ name }) {
  const loaded = useLoad(stop => getJson(`pools/${encodeURIComponent(name)}`, { signal: stop }), [name]);
  const pool = loaded.data.value;
  if (!pool)
    return html`<${Title} kind="Pool">${name}</${Title}>
    ${loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} />`}`;
  return html`<${Title} kind="Pool">${name}</${Title}><p class="subtitle">
      ${plural(pool.machines.length, 'machine')}, ${count(pool.min)} to ${count(pool.max)} · law ${pool.law} · jobs should wait at most ${span(pool.horizon_s * 1000)}
      ${pool.paused ? ' · paused' : ''}</p>${pool.problem && html`<div class="banner bad"><span><b>✗</b> ${pool.problem}</span></div>`}
    <${Panel} title="Decisions" note="newest first"><${Decisions} name=${name} /></${Panel}>
    <${Panel} title="Machines">${
      pool.machines.length
        ? html`<${Wide} label="Machines"><table class="rows"><caption class="unseen">Machines</caption>
            <thead><tr><th scope="col">Machine</th><th scope="col">State</th><th scope="col">Asked for</th>
                <th scope="col" class="num">Jobs it has run</th><th scope="col">Why it retires</th></tr></thead><tbody>
              ${pool.machines.map(
                machine => html`<tr key=${machine.name} data-row tabindex="-1"><td><${HostLink} name=${machine.name} /></td><td>
                  <${State} state=${machine.state} /></td><td><${Ago} ms=${machine.asked_ms} /></td>${num(count(machine.jobs))}<td>
                      ${machine.why}</td></tr>`,
              )}</tbody></table></${Wide}>`
        : html`<${Empty}>It has no machine now.</${Empty}>`
    }</${Panel}>`;
}

export default ({ name }) => (name ? html`<${Pool} name=${name} />` : html`<${Pools} />`);
