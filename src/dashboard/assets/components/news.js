// News for people who do not see the page change.

import { signal } from '../ui.js';

/** What was said last. */
export const said = signal('');
export function announce(text) {
  said.value = said.peek() === text ? `${text} ` : text;
}
