// All queues, and their weights.

import { html } from '../ui.js';
import { isAdmin } from '../api.js';
import { queues, ready } from '../live.js';
import { openAction } from '../components/action.js';
import { Panel, Title } from '../components/parts.js';
import { Series } from '../components/series.js';
import { QueueTable } from './overview.js';

export default function Queues() {
  const weights = () =>
    openAction({ action: 'weights', now: Object.fromEntries([...queues.rows.values()].map(queue => [queue.name, queue.weight])) });
  return html`<${Title} actions=${isAdmin() && ready.value && html`<button data-action="weights" onClick=${weights}>Weights …</button>`}>Queues</${Title}>
    <${Panel} title="Queues" note="in the order in which they are served"><${QueueTable} /></${Panel}><${Series} />`;
}
