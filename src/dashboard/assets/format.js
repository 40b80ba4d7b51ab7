// Numbers, times and states as words and signs.

import { html, signal, computed } from './ui.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The scheduler's clock less ours, ms. */
export const skew = signal(0);
/** The scheduler's clock as last looked at, once a second. */
export const now = signal(Date.now());
export const serverNow = () => Date.now() + skew.peek();
setInterval(() => {
  now.value = serverNow();
}, SECOND);

const whole = new Intl.NumberFormat('en');
export const count = n => (n === undefined || n === null ? '–' : whole.format(n));
export const percent = permille => (permille === undefined ? '–' : `${(permille / 10).toFixed(permille < 100 && permille % 10 ? 1 : 0)} %`);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** Memory as people say it. */
export function memory(mb) {
  if (mb === undefined) return '–';
  if (mb < 1024) return `${mb} MB`;
  const [amount, unit] = mb < 10 * 1024 ** 2 ? [mb / 1024, 'GB'] : [mb / 1024 ** 2, 'TB'];
  return `${amount.toFixed(amount % 1 && amount < 10 ? 1 : 0)} ${unit}`;
}

/** A span of time in at most two units. */
export function span(ms) {
  if (ms === undefined || Number.isNaN(ms)) return '–';
  const past = Math.max(0, ms);
  if (past < MINUTE) return `${Math.floor(past / SECOND)} s`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ${String(Math.floor((past % MINUTE) / SECOND)).padStart(2, '0')} s`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ${String(Math.floor((past % HOUR) / MINUTE)).padStart(2, '0')} min`;
  return `${Math.floor(past / DAY)} d ${Math.floor((past % DAY) / HOUR)} h`;
}

/** A span of time in one unit, for narrow places. */
export function brief(ms) {
  const past = Math.max(0, ms);
  if (past < MINUTE) return `${Math.floor(past / SECOND)} s`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min`;
  return past < 2 * DAY ? `${Math.floor(past / HOUR)} h` : `${Math.floor(past / DAY)} d`;
}

/** Hours of hosts. */
export const hours = ms =>
  ms === undefined ? '–' : `${whole.format(Math.round((ms / HOUR) * (ms < 10 * HOUR ? 10 : 1)) / (ms < 10 * HOUR ? 10 : 1))} h`;

/** The moment of a text of the scheduler, UTC epoch ms. */
export const momentOf = text => (text ? Date.parse(text.replace(/([+-]\d\d)(\d\d)$/, '$1:$2')) : undefined);

const moment = new Intl.DateTimeFormat('sv-SE', {
  ...Object.fromEntries(['year', 'month', 'day', 'hour', 'minute', 'second'].map(part => [part, part === 'year' ? 'numeric' : '2-digit'])),
  timeZoneName: 'short',
});
/** An exact time, in the zone of who looks. */
export const exact = ms => moment.format(ms);

/** A time as its distance to now, with the exact one behind it. */
export function Ago({ ms, prefix = '', suffix = 'ago' }) {
  if (!ms) return html`<span class="faint">–</span>`;
  const text = computed(() => {
    const past = now.value - ms;
    return past < -SECOND ? `${prefix}in ${brief(-past)}` : `${prefix}${brief(past)} ${suffix}`.trim();
  });
  return html`<time dateTime=${new Date(ms).toISOString()} title=${exact(ms)}>${text}</time>`;
}

/** How long something has lasted, from a time until another or until now; `short`: in one unit. */
export function Lasts({ since, until, short }) {
  if (!since) return html`<span class="faint">–</span>`;
  const text = computed(() => (short ? brief : span)((until ?? now.value) - since));
  return html`<time dateTime=${new Date(since).toISOString()} title=${exact(since)}>${text}</time>`;
}

/** Signs and tones of states of hosts: a state is known by its sign and its word, not by colour alone. */
export const HOST_STATES = {
  busy: ['►', 'work', 'it runs jobs'],
  waiting: ['◦', 'good', 'it asks for work'],
  idle: ['·', 'calm', 'it is heard of and does not ask for work'],
  silent: ['?', 'bad', 'nothing was heard of it for a lease'],
  off: ['×', 'off', 'it is registered and nothing is heard of it: jobs wait for it'],
  cordoned: ['‖', 'warn', 'an admin closed it'],
  draining: ['↓', 'warn', 'it is closed and still has jobs'],
  drained: ['∅', 'off', 'it is closed and empty'],
  suspect: ['!', 'bad', 'the lab closed it because jobs failed there'],
};
export const hostStates = Object.keys(HOST_STATES);

const OPEN_STAGES = {
  submit: ['◦', 'calm', 'waits'],
  dispatch: ['→', 'work', 'dispatched'],
  boot: ['↑', 'work', 'boots'],
  setup: ['⋯', 'work', 'sets up'],
  wait_peer: ['⇄', 'work', 'waits for peers'],
  running: ['►', 'work', 'runs'],
  post_run: ['⇪', 'work', 'collects results'],
  manual_check: ['☞', 'warn', 'held for a person'],
  renew: ['↻', 'work', 'renewed'],
};
const FAILURES = { infra: ['↯', 'warn'], timeout: ['◷', 'bad'], oom: ['▲', 'bad'], panic: ['⊠', 'bad'], fail: ['✗', 'bad'] };

/** Sign, tone and word of a job as it is. */
export function jobState(job) {
  if (job.job_stage === '') return ['·', 'off', 'not made yet'];
  const open = OPEN_STAGES[job.job_stage];
  if (open) return job.held_by ? ['‖', 'warn', 'held'] : open;
  if (job.job_health === 'success') return ['✓', 'good', 'success'];
  if (job.job_health === 'cancel' || job.job_health === 'terminate') return ['⊘', 'off', job.job_health === 'cancel' ? 'cancelled' : 'stopped'];
  const [sign, tone] = FAILURES[job.failure] ?? ['✗', 'bad'];
  return [sign, tone, job.job_health.replaceAll('_', ' ')];
}

/** Whether a job has ended. */
export const isOver = job => job.job_stage !== '' && !(job.job_stage in OPEN_STAGES);

/** A state as a sign and a word. */
export function State({ of: [sign, tone, word], title }) {
  return html`<span class=${`state ${tone}`} title=${title}><span aria-hidden="true" class="sign">${sign}</span>${word}</span>`;
}
export const JobState = ({ job }) => html`<${State} of=${jobState(job)} title=${job.reason || undefined} />`;
export function HostState({ host }) {
  const [sign, tone, meaning] = HOST_STATES[host.state] ?? ['?', 'bad', ''];
  return html`<${State} of=${[sign, tone, host.state]} title=${meaning} />`;
}
