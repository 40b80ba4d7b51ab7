// What each constraint of a job costs: how many more hosts could run it without that one.

import { html } from '../ui.js';

export function Costs({ costs }) {
  if (!costs?.length) return null;
  return html`<div class="costs"><p><b>Cost of each constraint</b></p><ul>
      ${costs.map(cost => html`<li key=${cost.constraint}>${cost.words}</li>`)}</ul></div>`;
}
