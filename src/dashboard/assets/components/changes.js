// What shows jobs is loaded again when the stream says that they changed.

import { useEffect } from '../ui.js';
import { changedJobs } from '../live.js';

/**
 * Calls `again` after jobs changed, once for all changes until then.
 *
 * `delayOf` gets a change (`ids`; `more`: how many without an id) and says after how many ms; undefined: it is of no
 * interest. `inputs`: when one of them changes, what was planned is forgotten. `wanted`: else nothing is called.
 */
export function useChanges(delayOf, again, inputs, wanted = true) {
  useEffect(() => {
    if (!wanted) return undefined;
    let planned;
    const act = () => {
      planned = undefined;
      again();
    };
    const deaf = changedJobs.subscribe(change => {
      const delay = delayOf(change);
      if (delay !== undefined) planned ??= setTimeout(act, delay);
    });
    return () => {
      deaf();
      clearTimeout(planned);
    };
  }, [...inputs, wanted]);
}
