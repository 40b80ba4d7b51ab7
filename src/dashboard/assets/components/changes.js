// Loads data again when the stream says that jobs changed.

import { useEffect } from '../ui.js';
import { changedJobs } from '../live.js';

/**
 * Calls `again` some time after a change of jobs. Changes that come until then do not add a call.
 *
 * `delayOf` gets a change: its `ids`, and how many `more` jobs changed. It returns the delay in ms, or undefined to
 * ignore the change. A new value in `inputs` forgets the planned call. Unless `wanted`, nothing is called.
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
      if (planned !== undefined) return;
      const delay = delayOf(change);
      if (delay !== undefined) planned = setTimeout(act, delay);
    });
    return () => {
      deaf();
      clearTimeout(planned);
    };
  }, [...inputs, wanted]);
}
