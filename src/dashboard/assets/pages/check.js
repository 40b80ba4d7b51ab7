// Before a submit: whether the lab would take a job file, how long its queue is, and what its constraints cost.

import { html, signal, useMemo } from '../ui.js';
import { ask, me } from '../api.js';
import { count, plural, serverNow, span } from '../format.js';
import { Costs } from '../components/costs.js';
import { Submits } from '../components/submits.js';
import { Empty, Panel, Problem, QueueLink, Title } from '../components/parts.js';

const EXAMPLE = 'suite: boot\ntestbox: dc\nscript: echo hello\n';
const SHOWN = 200;
const WEEK_MS = 7 * 86_400_000;

/** The submits of whoever looks; of everybody where nobody has a name. */
function Newest() {
  const account = me.value?.my_account;
  const filter = useMemo(() => ({ account, since_ms: serverNow() - WEEK_MS }), [account]);
  return html`<${Panel} title=${account ? 'Your newest submits' : 'Newest submits'} note="within 7 days">
      <${Submits} filter=${filter} empty="Nothing was submitted." /></${Panel}>`;
}

const waited = ({ jobs, p50_s: half, p95_s: most }) =>
  jobs ? `half of ${count(jobs)} jobs waited less than ${span(half * 1000)}, 95 % less than ${span(most * 1000)}` : 'no job began';

function Outlook({ outlook }) {
  const { queue, hosts_able: able, hosts_known: known, hosts_ready: ready } = outlook;
  return html`<div class="why"><p class="answer">${outlook.summary}</p><ul><li>
        ${`${count(able)} of ${count(known)} known hosts could run it, ${count(ready)} now`}</li><li>${outlook.before.words}</li><li>
        in the last hour in queue <${QueueLink} name=${queue} />${`: ${waited(outlook.queue_waits)}`}</li><li>in the last hour in all queues of priority ${outlook.class}: ${waited(outlook.class_waits)}</li></ul>
      <${Costs} costs=${outlook.costs} /></div>`;
}

function Item({ item, n }) {
  const refused = item.job_id === '0';
  return html`<li><p><span class=${`state ${refused ? 'bad' : 'good'}`}><span class="sign" aria-hidden="true">${refused ? '✗' : '✓'}</span>
        ${refused ? 'would be refused' : 'would be accepted'}</span> job ${n}${item.message && `: ${item.message}`}</p>
      ${item.hint && html`<p class="faint">${item.hint}</p>`}${item.warnings?.map(words => html`<p key=${words} class="faint">${words}</p>`)}
      ${item.outlook && html`<${Outlook} outlook=${item.outlook} />`}</li>`;
}

export default function Check() {
  const { items, error, busy } = useMemo(() => ({ items: signal(), error: signal(), busy: signal(false) }), []);
  const check = async event => {
    event.preventDefault();
    const text = event.target.elements.file.value;
    busy.value = true;
    error.value = undefined;
    try {
      const headers = { 'content-type': 'application/yaml' };
      items.value = await (await ask('jobs/submit?dry_run=true', { method: 'POST', text, headers })).json();
    } catch (refused) {
      items.value = undefined;
      error.value = refused;
    }
    busy.value = false;
  };
  const all = items.value;
  return html`<${Title}>Before a submit</${Title}><p class="subtitle">Nothing is submitted: the lab says what it would make of the file.</p>
    <${Panel} title="Job file" note="YAML, without includes"><form class="check-file" onSubmit=${check}>
      <label class="unseen" for="job-file">Job file</label>
      <textarea id="job-file" name="file" rows="12" spellcheck="false" autocomplete="off" required data-filter>${EXAMPLE}</textarea>
      <p><button disabled=${busy.value}>Check</button></p></form></${Panel}><${Problem} error=${error.value} />
    <${Panel} title="Outlook" note=${all ? plural(all.length, 'job') : ''}><div class="pad" aria-live="polite">${
      all
        ? html`<ol class="plain">${all.slice(0, SHOWN).map((item, i) => html`<${Item} key=${i} item=${item} n=${i + 1} />`)}</ol>`
        : html`<${Empty}>Check a file to see hosts, the queue before it, and recent waits.</${Empty}>`
    }${all?.length > SHOWN && html`<p class="faint">The first ${count(SHOWN)} are shown.</p>`}</div></${Panel}><${Newest} />`;
}
